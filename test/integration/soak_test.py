"""A whole system that runs on: servers and workers behind TLS, publishing, serving, figures that are read.

Memory, threads, descriptors and the folders of state and versions must not grow. By default it takes 12 s, which
finds what leaks with each pass or request; CISTERN_SOAK_SECONDS=3600 takes an hour, and prints what it saw.
"""

import json
import os
import signal
import struct
import subprocess
import time
import unittest

from programs import BIN, LIMIT_SECONDS, Samples, Servers, free_port, wait_for
from serve_process import Serve, arrays_of
from workers import WorkersTest

SECONDS = float(os.environ.get("CISTERN_SOAK_SECONDS", "12"))


class Use:
    """What a process holds now."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
        self.bytes = int(fields["VmRSS"].split()[0]) << 10
        self.threads = int(fields["Threads"])
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))


def held_by(folder):
    """The number of files below a folder, and their bytes. Files may go meanwhile."""
    count = size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_size
                count += 1
            except FileNotFoundError:
                pass
    return count, size


class Soak(WorkersTest):

    SAMPLES = 2000

    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        self.run_ok("cistern", "certs", "init", "--certs", self.certs)
        self.run_ok("cistern", "certs", "issue", "server", "--role", "server", "--hosts", "127.0.0.1", "--certs",
                    self.certs)
        self.run_ok("cistern", "certs", "issue", "train", "--role", "worker", "--certs", self.certs)

    def tls(self, name, joint="-"):
        """Flags of cistern and cistern-worker, or of cistern-server (joint "_")."""
        return [f"--tls{joint}{what}={self.certs / file}" for what, file in
                (("ca", "ca.crt"), ("cert", f"{name}.crt"), ("key", f"{name}.key"))]

    def start_logged(self, *words):
        """Starts a program that says more than a pipe holds."""
        with open(self.folder / "programs.log", "ab") as log:
            process = subprocess.Popen([str(BIN / words[0]), *map(str, words[1:])], stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        self.addCleanup(self.end, process)
        return process

    def ask(self, served):
        """One prediction, in the binary form of the protocol."""
        inputs, binary = [], b""
        for name, kind, shape, code, values in arrays_of(Samples(3, seed=9).rows):
            part = struct.pack(f"<{len(values)}{code}", *values)
            inputs.append({"name": name, "datatype": kind, "shape": shape,
                           "parameters": {"binary_data_size": len(part)}})
            binary += part
        head = json.dumps({"inputs": inputs}).encode()
        status, answer, _ = served.post(head + binary, {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual(status, 200, answer)

    def test_nothing_grows(self):
        serving, saved = self.folder / "serving", self.folder / "saved"
        with Servers(2, self.folder, flags=self.tls("server", "_"), durability="commit") as fleet:
            peers = f"127.0.0.1:{free_port()}"
            workers = [self.start_logged(*self.words(
                "run", fleet, rank, 2, peers, *self.tls("train"), "--no-save-model", "--metrics-port", 0, "--set",
                "solver.num_epochs=100000000")) for rank in range(2)]
            self.await_passes("run", 3, workers)
            publisher = self.start_logged("cistern", "publish", self.config, "--follow", saved, "--out", serving,
                                          "--poll-ms", 200)
            wait_for(lambda: (serving / "HEAD").exists() or publisher.poll() is not None, "a version")
            with Serve(serving) as served:
                processes = {"server 0": fleet.all[0].process, "server 1": fleet.all[1].process,
                             "worker 0": workers[0], "worker 1": workers[1], "publisher": publisher,
                             "serve": served.process}
                seen = self.watch(processes, served, {"state": saved / "state", "versions": serving})
            self.judge(seen)
            for process in workers + [publisher]:
                process.send_signal(signal.SIGTERM)
            self.assertEqual([process.wait(LIMIT_SECONDS) for process in workers + [publisher]], [130, 130, 0])

    def watch(self, processes, served, folders):
        """Samples of all that is held, about 100, while predictions are asked for."""
        seen = {}
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS:
            until = time.monotonic() + max(SECONDS / 100, .2)
            while time.monotonic() < until:
                self.ask(served)
                served.get("/metrics")
            for name, process in processes.items():
                self.assertIsNone(process.poll(), f"{name} has ended")
                use = Use(process.pid)
                for what in ("bytes", "threads", "descriptors"):
                    seen.setdefault((name, what), []).append(getattr(use, what))
            for name, folder in folders.items():
                count, size = held_by(folder)
                seen.setdefault((name, "files"), []).append(count)
                seen.setdefault((name, "bytes"), []).append(size)
        return seen

    def judge(self, seen):
        """The last third of the time holds no more than the third before; the first one is the start.

        The audit logs are not counted: they grow up to 128 MiB a server. Files, and the descriptors of the publisher, which has them open, come and go with merges: up to 80 at a time.
        What leaks with each pass or request is soon more than what is spared here.
        """
        spare = {"bytes": 16 << 20, "threads": 4, "descriptors": 80, "files": 100}
        for (name, what), values in seen.items():
            third = len(values) // 3
            middle, last = max(values[third:2 * third]), max(values[2 * third:])
            if SECONDS > 60:
                print(f"{name:10} {what:12} start {values[0]:12} middle {middle:12} end {last:12}", flush=True)
            self.assertLessEqual(last, middle * 1.1 + spare[what], f"{name} holds more and more {what}: {values}")
        print(f"{self.passes('run')} passes", flush=True)


if __name__ == "__main__":
    unittest.main()
