"""Data in streams: each worker decodes its share, and any number of workers trains the same model."""

import os
import random
import shutil
import time
import unittest

from programs import Samples, Servers, finish, run, start, write_list
from workers import WorkersTest

ROUNDS = int(os.environ.get("CISTERN_KILLS", "2"))  # of test_kills_of_a_worker_during_commits


class Streams(WorkersTest):

    SIZES = (700, 30, 0, 400, 1, 900, 250, 310)  # of the files

    def setUp(self):
        super().setUp()
        names = []
        for i, size in enumerate(self.SIZES):
            path = self.folder / f"part-{i}.norm"
            Samples(size, seed=10 + i).write(path)
            names.append(path)
        self.files = write_list(self.folder / "parts.txt", names)

    def use(self, streams=None, source=None, **solver):
        def change(content):
            content["layers"][0]["source"] = str(source or self.files)
            if streams:
                content["cistern"] = {"streams": streams}
            content["solver"].update(display=5, eval_interval=7, **solver)
        self.write_model(change)

    def train_with(self, count):
        with Servers(2, self.folder) as servers:
            name = f"run-{count}-{random.random()}"
            summary = self.train(name, servers, count)
            return summary, self.outcome(name, servers), self.lines(name)

    def compare(self):
        """Trains with 1 to 4 workers; returns the bytes that each decoded."""
        decoded, first = [], None
        for count in (1, 2, 3, 4):
            summary, (tables, files), lines = self.train_with(count)
            self.assertEqual(len(summary["decoded_bytes"]), count)
            if count > 1:
                self.assertEqual(lines[-1]["decoded_bytes"], summary["decoded_bytes"])
            decoded.append(summary["decoded_bytes"])
            first = first or (tables, files, lines)
            self.assertEqual({n: rows for n, (rows, _) in tables.items()},
                             {n: rows for n, (rows, _) in first[0].items()})
            self.expect_close(self.rows(files, "deep"), self.rows(first[1], "deep"))
            self.expect_same_lines(lines, first[2])
        return decoded

    def test_streams_of_different_length(self):
        self.use(streams=8)
        decoded = self.compare()
        for by_worker in decoded:
            self.assertEqual(sum(by_worker), decoded[0][0])

    def test_fewer_streams_than_workers(self):
        self.use(streams=2)
        decoded = self.compare()
        self.assertEqual(sum(1 for count in decoded[3] if count > 0), 2)
        self.assertEqual(sum(decoded[3]), decoded[0][0])

    def test_fewer_streams_than_workers_are_a_warning(self):
        self.use(streams=2)
        with Servers(1, self.folder) as servers:
            self.train("run", servers, 3)
        warnings = [line["message"] for line in self.lines("run") if line["event"] == "warning"]
        expected = "the training data has 2 streams for 3 workers: 1 of them will read nothing"
        self.assertTrue(any(expected in warning for warning in warnings), warnings)
        plan = self.run_ok("cistern", "plan", self.config, "--workers", 3, "--json").json()
        self.assertIn(expected, plan["warnings"][0])
        self.assertEqual(self.run_ok("cistern", "plan", self.config, "--workers", 2, "--json").json()["warnings"], [])

    def test_equal_streams_are_decoded_in_equal_shares(self):
        names = []
        for i in range(12):  # so that 2, 3 and 4 workers have equally many
            path = self.folder / f"equal-{i}.norm"
            Samples(200, seed=30 + i).write(path)
            names.append(path)
        self.use(streams=12, source=write_list(self.folder / "equal.txt", names))
        for by_worker in self.compare():
            for count in by_worker:
                self.assertAlmostEqual(count * len(by_worker) / sum(by_worker), 1, delta=0.07)

    def test_fewer_files_than_streams_are_divided(self):
        names = []
        for i, size in enumerate((1700, 0, 700)):
            path = self.folder / f"few-{i}.norm"
            Samples(size, seed=50 + i).write(path)
            names.append(path)
        self.use(streams=12, source=write_list(self.folder / "few.txt", names))
        for by_worker in self.compare():
            for count in by_worker:
                self.assertAlmostEqual(count * len(by_worker) / sum(by_worker), 1, delta=0.07)

    def test_in_the_order_of_the_files_each_worker_decodes_its_part(self):
        self.use()
        for by_worker in self.compare():
            for count in by_worker:
                # A worker also decodes a record where its buffer ends, and one ahead of each batch.
                self.assertAlmostEqual(count * len(by_worker) / sum(by_worker), 1, delta=0.1)

    def test_the_number_of_streams_cannot_change_in_a_run(self):
        self.use(streams=8, num_epochs=1)
        with Servers(1, self.folder, durability="commit") as servers:
            self.train("run", servers, 1)
            self.use(streams=4, num_epochs=2)
            result = run(*self.words("run", servers, 0, 1, self.peers, "--resume"))
            self.expect(result, 2, "cistern.streams is 4, but the run to resume has 8")

    def test_kills_of_a_worker_during_commits(self):
        """CISTERN_KILLS rounds, of two and of four workers in turn: a worker dies at any time, mostly
        while a commit is in flight."""
        epochs = 12
        self.use(streams=8, num_epochs=epochs)
        expected = {count: self.train_with(count)[1] for count in (2, 4)}
        draw = random.Random(os.environ.get("CISTERN_SEED", "1"))
        flags = ("--recovery-limit", 60)
        for turn in range(ROUNDS):
            count, name = (2, 4)[turn % 2], f"killed-{turn}"
            with Servers(2, self.folder, durability="commit",
                         data_dir=self.folder / f"state-{turn}") as servers:
                workers = self.start_workers(name, servers, count, *flags)
                self.await_passes(name, draw.randrange(1, epochs - 2), workers)
                time.sleep(draw.random() * 0.05)
                victim = draw.randrange(count)
                workers[victim].kill()
                finish(workers[victim])
                workers[victim] = start(*self.words(name, servers, victim, count, self.peers, *flags,
                                                    "--resume"))
                for worker in workers:
                    self.expect(finish(worker), 0)
                self.assertEqual(self.outcome(name, servers), expected[count], f"round {turn}")
            for path in (self.folder / name, self.folder / f"state-{turn}"):
                shutil.rmtree(path)
        print(f"{ROUNDS} kills of a worker, of 2 and of 4: every run ends with the bits of an undisturbed one")


if __name__ == "__main__":
    unittest.main(verbosity=2)
