"""Two replicas are restarted in turn under load, and no request is lost.

CISTERN_ROLLING_REQUESTS: the least number of requests over HTTP, 100,000 by default. The load goes on until both
replicas have been restarted.
"""

import multiprocessing
import os
import select
import signal
import socket
import sys
import threading
import time
import unittest

from programs import ROOT, finish, free_ports, wait_for
from serve_process import Serve, arrays_of, binary_body
from serving_folder import ServingTest

sys.path.append(str(ROOT / "build" / "tritonclient"))
try:
    import numpy
    import tritonclient.grpc as grpc_client
except ImportError:
    grpc_client = None

REQUESTS = int(os.environ.get("CISTERN_ROLLING_REQUESTS", 100_000))
GRPC_REQUESTS = 4_000
CLIENTS = 2  # processes
POLL_SECONDS = 0.05  # of readiness; a small part of the drain
DRAIN_SECONDS = 5


class Connection:
    """A connection that is kept until the server asks to close it, or closes it while it is idle."""

    def __init__(self, port):
        self.port, self.socket = port, None

    def ask(self, request):
        """The status line and the body of the answer."""
        if self.socket is not None and select.select([self.socket], [], [], 0)[0]:
            self.close()  # no answer is due, so this is the end of the connection
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=20)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket.sendall(request)
            received = b""
            while b"\r\n\r\n" not in received:
                received += self._receive()
            head, _, body = received.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            while len(body) < length:
                body += self._receive()
        except OSError:
            self.close()
            raise
        if b"connection: close" in lines:
            self.close()
        return head.split(b"\r\n")[0], body

    def _receive(self):
        some = self.socket.recv(65536)
        if not some:
            raise ConnectionError("closed before the answer")
        return some

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None


READY = b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n"


def watch(ports, ready, stop):
    """What a load balancer does: asks each replica whether it is ready."""
    probes = [Connection(port) for port in ports]
    while not stop.wait(POLL_SECONDS):
        for i, probe in enumerate(probes):
            try:
                ready[i] = probe.ask(READY)[0].endswith(b" 200 OK")
            except OSError:
                ready[i] = False
    for probe in probes:
        probe.close()


def send(ports, request, expected, sent, faults, restarted):
    """Sends requests to the replicas that are ready, in turn."""
    ready, stop = [True] * len(ports), threading.Event()
    watcher = threading.Thread(target=watch, args=(ports, ready, stop))
    watcher.start()
    connections = [Connection(port) for port in ports]
    turn = 0
    while sent.value < REQUESTS or not restarted.is_set():
        turn = (turn + 1) % len(ports)
        if not ready[turn]:
            turn = next((j for j in range(len(ports)) if ready[j]), turn)
        try:
            status, body = connections[turn].ask(request)
            fault = None if status.endswith(b" 200 OK") and body.endswith(expected) else (status, body)
        except OSError as error:
            fault = repr(error)
        if fault is not None:
            faults.put((ports[turn], str(fault)))
        with sent.get_lock():
            sent.value += 1
    stop.set()
    watcher.join()
    for connection in connections:
        connection.close()


class Rolling(ServingTest):

    def setUp(self):
        super().setUp()
        self.train()
        self.export("--model", self.folder / "run")

    def start(self, port, grpc_port=0):
        return Serve(self.serving, port=port, grpc_port=grpc_port, drain=DRAIN_SECONDS)

    def restart(self, replica, port, grpc_port=0):
        replica.process.send_signal(signal.SIGTERM)
        self.expect(finish(replica.process), 0)
        replica.connection.close()
        return self.start(port, grpc_port)

    def test_no_request_is_lost_over_http(self):
        ports = free_ports(2)
        replicas = [self.start(port) for port in ports]
        body, headers = binary_body(self.samples[:1])
        lines = [f"{name}: {value}" for name, value in
                 {**headers, "Host": "x", "Content-Length": len(body)}.items()]
        request = ("POST /v2/models/model/infer HTTP/1.1\r\n" + "\r\n".join(lines)
                   + "\r\n\r\n").encode() + body
        expected = replicas[0].post(body, headers)[2]
        self.assertEqual(len(expected), 12)  # a float and a commit
        context = multiprocessing.get_context("fork")
        sent, faults, restarted = context.Value("q", 0), context.Queue(), context.Event()
        clients = [context.Process(target=send, args=(ports, request, expected, sent, faults, restarted))
                   for _ in range(CLIENTS)]
        begin = time.monotonic()
        for client in clients:
            client.start()
            self.addCleanup(client.kill)
        restarted_at = []
        for i, share in enumerate((0.1, 0.3)):
            wait_for(lambda: sent.value >= share * REQUESTS, f"{share} of the requests")
            replicas[i] = self.restart(replicas[i], ports[i])
            restarted_at.append(sent.value)
        restarted.set()
        # A client that has ended has put all its faults into the queue, which needs a reader.
        lost = []
        while any(client.is_alive() for client in clients):
            while not faults.empty():
                lost.append(faults.get())
            clients[0].join(0.05)
        for client in clients:
            client.join()
            self.assertEqual(client.exitcode, 0)
        while not faults.empty():
            lost.append(faults.get())
        seconds = time.monotonic() - begin
        print(f"{sent.value} requests in {seconds:.1f} s, restarts done at {restarted_at}, lost: "
              f"{len(lost)}", flush=True)
        self.assertEqual(lost, [])
        self.assertGreaterEqual(sent.value, REQUESTS)
        for replica in replicas:
            replica.stop()
            replica.connection.close()

    @unittest.skipIf(grpc_client is None, "tritonclient is not installed")
    def test_no_request_is_lost_over_grpc(self):
        free = free_ports(4)
        ports, grpc_ports = free[:2], free[2:]
        replicas = [self.start(*pair) for pair in zip(ports, grpc_ports)]
        inputs = []
        for name, kind, shape, code, values in arrays_of(self.samples[:1]):
            inputs.append(grpc_client.InferInput(name, shape, kind))
            inputs[-1].set_data_from_numpy(numpy.array(values, code).reshape(shape))
        clients = [grpc_client.InferenceServerClient(f"127.0.0.1:{port}") for port in grpc_ports]
        ready, lost, sent, stop = [True, True], [], [0], threading.Event()

        def probe():
            while not stop.wait(POLL_SECONDS):
                for i, one in enumerate(clients):
                    try:
                        ready[i] = one.is_server_ready(client_timeout=5)
                    except grpc_client.InferenceServerException:
                        ready[i] = False

        def load():
            while not stop.is_set():
                turn = sent[0] % 2
                turn = turn if ready[turn] else 1 - turn
                try:
                    clients[turn].infer("model", inputs, client_timeout=20)
                except grpc_client.InferenceServerException as error:
                    lost.append((turn, str(error)))
                sent[0] += 1

        threads = [threading.Thread(target=probe), threading.Thread(target=load)]
        for thread in threads:
            thread.start()
        self.addCleanup(stop.set)
        for i, share in enumerate((0.1, 0.5)):
            wait_for(lambda: sent[0] >= share * GRPC_REQUESTS, f"{share} of the requests")
            replicas[i] = self.restart(replicas[i], ports[i], grpc_ports[i])
            wait_for(lambda: ready[i], "the channel to the new replica")
        wait_for(lambda: sent[0] >= GRPC_REQUESTS, "all requests")
        stop.set()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()
        for replica in replicas:
            replica.stop()
            replica.connection.close()
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
