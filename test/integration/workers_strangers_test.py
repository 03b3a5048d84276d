"""Workers gather while strangers connect to the port of worker 0, and while processes are restarted."""

import random
import socket
import struct
import threading
import unittest

from programs import Server, Servers, finish, free_port, start, wait_for
from workers import WorkersTest


def hello(secret, rank, size=2, port=9, magic=b"CISTPEE2"):
    """A hello in the format of worker/group/hello.h."""
    return magic + struct.pack("<QIII", secret, rank, size, port)


class Strangers:
    """Connects to a port again and again, while it is open, during a `with` statement."""

    KEPT = 300  # connections that stay open, some of them silent

    def __init__(self, port):
        self.port, self.connections = port, 0
        self.draw = random.Random(7)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.knock)

    def said(self):
        secret = self.draw.getrandbits(64)
        return self.draw.choice([
            b"", b"C", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            hello(secret, 1), hello(0, 1), hello(secret, 0), hello(secret, 1, size=3),
            hello(secret, 2**32 - 1, size=2**32 - 1), hello(secret, 1)[:20],
            hello(secret, 1) + struct.pack("<QQQ", 2**62, 2**63, 2**64 - 1),
            # Hellos of an older protocol version.
            *(struct.pack("<8siiI64s", b"CISTPEER", 1, size, 9, b"cistern train")
              for size in (2, 3)),
        ])

    def knock(self):
        kept = []
        while not self.ended.is_set():
            try:
                stranger = socket.create_connection(("127.0.0.1", self.port), timeout=1)
                stranger.sendall(self.said())
            except OSError:  # the port is not open yet, or not any more
                self.ended.wait(0.01)
                continue
            self.connections += 1
            kept.append(stranger)
            if len(kept) > self.KEPT:
                kept.pop(self.draw.randrange(len(kept))).close()
        for stranger in kept:
            stranger.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def is_open(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Gathering(WorkersTest):

    def start_leader(self, servers):
        """Starts worker 0 and waits until it listens."""
        self.port = free_port()
        self.peers = f"127.0.0.1:{self.port}"
        leader = self.start_worker(servers, 0)
        wait_for(lambda: is_open(self.port) or leader.poll() is not None, "worker 0 listens")
        return leader

    def start_worker(self, servers, rank, *flags):
        worker = start(*self.words("run", servers, rank, 2, self.peers, "--recovery-limit", 60,
                                   *flags))
        self.addCleanup(self.end, worker)
        return worker

    def outcome_of(self, servers, workers):
        results = [finish(worker) for worker in workers]
        for result in results:
            self.expect(result, 0)
        return self.outcome("run", servers), results

    def undisturbed(self):
        with Servers(2, self.folder) as servers:
            self.train("undisturbed", servers, 2)
            return self.outcome("undisturbed", servers)

    def test_strangers_connect_while_workers_gather(self):
        expected = self.undisturbed()
        with Servers(2, self.folder) as servers:
            leader = self.start_leader(servers)
            with Strangers(self.port) as strangers:
                wait_for(lambda: strangers.connections > 1000 or leader.poll() is not None,
                         "strangers")
                found, results = self.outcome_of(servers, [leader, self.start_worker(servers, 1)])
        self.assertEqual(found, expected)
        self.expect(results[0], 0, "worker 0 gathering: dropped",
                    "connections that do not belong to this run", "with another secret",
                    "closed before their hello", "of another program or version")

    def test_restarted_worker_0_with_a_new_secret(self):
        with Servers(1, self.folder) as servers:
            first = self.start_leader(servers)
            first.kill()
            finish(first)
            other = self.start_worker(servers, 1)
            self.outcome_of(servers, [self.start_worker(servers, 0), other])

    def test_restart_of_the_server_that_stores_the_secret(self):
        with Servers(1, self.folder, durability="commit") as servers:
            leader = self.start_leader(servers)
            old = servers.all[0]
            old.kill()
            old.stop()
            servers.all[0] = Server(0, 1, self.folder, port=old.port, durability="commit")
            self.outcome_of(servers, [leader, self.start_worker(servers, 1)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
