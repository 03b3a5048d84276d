"""Workers that cannot train together fail with the reason."""

import re
import signal
import unittest
import urllib.request

from programs import Servers, finish, free_port, run, start, wait_for
from workers import WorkersTest


class Refusals(WorkersTest):
    """Workers that do not fit together all end, with the reason."""

    def results(self, *workers, limit=30):
        """The results of workers given as (rank, world size, flags...)."""
        peers = f"127.0.0.1:{free_port()}"
        with Servers(1, self.folder) as servers:
            started = [start(*self.words("run", servers, rank, count, peers, "--recovery-limit",
                                         limit, *flags)) for rank, count, *flags in workers]
            for worker in started:
                self.addCleanup(self.end, worker)
            return [finish(worker) for worker in started]

    def test_bad_record(self):
        content = bytearray(self.train_file.read_bytes())
        content[self.offsets[555] + 6] ^= 0xff
        self.train_file.write_bytes(bytes(content))
        for result in self.results((0, 3), (1, 3), (2, 3)):
            self.expect(result, 4, "train.norm: record 555", "check byte")

    def test_different_models(self):
        for result in self.results((0, 3), (1, 3), (2, 3, "--set", "solver.batchsize=50")):
            self.expect(result, 2, "worker 2 was started with another model",
                        "solver.batchsize: 50; worker 0 has 100")

    def test_worker_of_another_fleet(self):
        (self.folder / "other").mkdir()
        peers = f"127.0.0.1:{free_port()}"
        with Servers(1, self.folder) as own, Servers(1, self.folder / "other") as other:
            started = [start(*self.words("run", servers, rank, 2, peers, "--recovery-limit", 2))
                       for rank, servers in enumerate((own, other))]
            for worker in started:
                self.addCleanup(self.end, worker)
            leader, follower = map(finish, started)
            self.expect(leader, 3, "worker 1 did not join")
            self.expect(follower, 3, f"it has stored no secret for {peers} on server "
                        f"{other.addresses}", "give all workers the same")

    def test_worker_that_does_not_join(self):
        leader, = self.results((0, 2), limit=1)
        self.expect(leader, 3, "worker 1 did not join")
        other, = self.results((1, 2), limit=1)
        self.expect(other, 3, "worker 0: it has stored no secret for 127.0.0.1:")

    def test_duplicate_rank_and_different_world_sizes(self):
        for result in self.results((0, 3), (1, 3), (1, 3)):
            self.expect(result, 2, "two processes were started as worker 1")
        for result in self.results((0, 3), (1, 2)):
            self.expect(result, 2, "worker 1 was started in a group of 2 workers")

    def test_invalid_peers_address(self):
        def first(peers, *flags):
            return run("cistern-worker", self.config, "--servers", "127.0.0.1:1", "--out",
                       self.folder / "run", "--rank", 0, "--world-size", 2, "--recovery-limit", 1,
                       *peers, *flags)
        self.expect(first(()), 2, "does not know where worker 0 is", "--peers")
        self.expect(first(("--peers", "nowhere")), 2, "'nowhere' has no port")
        self.expect(first(("--peers", "10.1.2.3:7790")), 2, "--insecure-remote")
        with Servers(1, self.folder) as servers:  # which listens there
            self.expect(run(*self.words("run", servers, 0, 2, servers.addresses)), 3,
                        "Address already in use", "choose another port")

    def test_interrupt_before_all_workers_join(self):
        with Servers(1, self.folder, flags=("--metrics_port=0",)) as servers:
            page = re.search(r"metrics=(\S+)", servers.all[0].ready).group(1)

            def asks_for_the_secret():
                with urllib.request.urlopen(page, timeout=60) as reply:
                    return re.search(r'call_seconds_count\{method="Meet"\} [1-9]', reply.read().decode())

            worker = start(*self.words("run", servers, 1, 2, f"127.0.0.1:{free_port()}"))
            self.addCleanup(self.end, worker)
            wait_for(asks_for_the_secret, "a worker that waits for worker 0")
            worker.send_signal(signal.SIGINT)
            self.expect(finish(worker), 130, "interrupted")


if __name__ == "__main__":
    unittest.main(verbosity=2)
