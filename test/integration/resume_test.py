"""kill -9 of the worker and of servers at random moments of a training run, which resumes each time.

Servers restart with any memory limit. In the end, rows, digests and the saved model equal those of an undisturbed run, bit for bit, and every
sample has been counted exactly once per epoch.

    resume_test.py [--long CYCLES]

CISTERN_CYCLES also sets the number of cycles; CISTERN_SEED is the seed of the random moments.
"""

import os
import random
import sys
import time
import unittest

from programs import (
    LIMIT_SECONDS, ProgramTest, Samples, Server, Servers, finish, run, start, wait_for)

CYCLES = int(os.environ.get("CISTERN_CYCLES", "20"))
SEED = int(os.environ.get("CISTERN_SEED", "1"))


class Resume(ProgramTest):

    SAMPLES = 1000
    SERVERS = 3

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.epochs = 20 + 12 * CYCLES  # an epoch is one pass; each cycle takes several
        self.write_model(self.change)

    def change(self, content):
        """Makes rows count shows, shuffles the samples, and disables evaluation during training."""
        content["solver"].update(num_epochs=self.epochs, eval_interval=0, display=0)
        content["cistern"] = {
            "shuffle": True,
            "embeddings": {"deep": {"accessor": "ctr", "embedx_threshold": 2,
                                    "optimizer": {"type": "AdaGradShared",
                                                  "learning_rate": 0.05}}}}

    def words(self, name, *flags):
        return ("cistern-worker", self.config, "--out", self.folder / name, *flags)

    def passes(self, name):
        """The number of passes in the metrics of a run."""
        path = self.folder / name / "metrics.jsonl"
        return path.read_text().count('"event":"pass"') if path.exists() else 0

    def outcome(self, name, servers):
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--digest",
                             "--json").json()
        model = self.folder / name / "model"
        files = {str(path.relative_to(model)): path.read_bytes()
                 for path in sorted(model.rglob("*")) if path.is_file()}
        return {table["name"]: (table["rows"], table["digest"])
                for table in status["tables"]}, files

    def shows(self, files):
        """The sum of the shows of all rows of a model: field 5 of a line (docs/formats.md)."""
        return sum(float(line.split()[4]) for name, content in files.items()
                   if name.startswith("deep/") for line in content.decode().splitlines())

    @staticmethod
    def rows(files):
        """The rows of each table: servers with a memory limit save them in another order."""
        return {name: sorted(content.splitlines()) for name, content in files.items()
                if not name.endswith(".json")}

    def end_of(self, worker):
        """Waits for the result of a run; allows time for all of its passes, which are many with many cycles."""
        return finish(worker, LIMIT_SECONDS + self.epochs)

    def undisturbed(self):
        with Servers(1, self.folder) as servers:
            worker = start(*self.words("undisturbed", "--servers", servers.addresses))
            self.expect(self.end_of(worker), 0)
            return self.outcome("undisturbed", servers)

    def await_passes(self, worker, name, count):
        """Waits until the run has `count` more passes, and a random moment longer; false if it ended."""
        goal = min(self.passes(name) + count, self.epochs)
        wait_for(lambda: worker.poll() is not None or self.passes(name) >= goal, "passes")
        time.sleep(self.random.uniform(0, 0.2))
        return worker.poll() is None

    def test_kills_of_worker_and_servers(self):
        print(f"CISTERN_SEED={SEED}, {CYCLES} cycles", flush=True)
        expected = self.undisturbed()
        occurrences = sum(len(keys) for _, _, slots in Samples(self.SAMPLES, seed=1).rows
                          for keys in slots)
        self.assertEqual(self.shows(expected[1]), self.epochs * occurrences)
        with Servers(self.SERVERS, self.folder, durability="commit", flags=self.limit()) as servers:
            words = self.words("run", "--servers", servers.addresses, "--connect-timeout", 1,
                               "--recovery-limit", 60, "--json")
            worker = start(*words)
            killed = restarted = 0
            for cycle in range(CYCLES):
                if not self.await_passes(worker, "run", 2):
                    break
                if cycle % 2 == 0:
                    worker.kill()
                    finish(worker)
                    worker = start(*words, "--resume")
                    killed += 1
                    continue
                self.restart(servers, self.random.randrange(self.SERVERS))
                restarted += 1
            summary = self.expect(self.end_of(worker), 0).json()
            self.assertEqual(killed, (CYCLES + 1) // 2)
            self.assertEqual(summary["samples"], self.epochs * self.SAMPLES)
            outcome = self.outcome("run", servers)
            self.assertEqual(outcome[0], expected[0])
            self.assertEqual(self.shows(outcome[1]), self.epochs * occurrences)
            self.assertEqual(self.rows(outcome[1]), self.rows(expected[1]))
            self.assertEqual(self.passes("run"), self.epochs)
            over = self.run_ok(*words, "--resume").json()
            self.assertEqual(over["resumed_from"], summary["iterations"])
            print(f"{killed + restarted} cycles: worker killed {killed} times, a server of "
                  f"{self.SERVERS} {restarted} times, {self.epochs} passes, "
                  f"{summary['samples']} samples: tables, dense parameters and counts as of the "
                  "undisturbed run", flush=True)

    def test_resume_waits_for_a_server_that_is_down(self):
        with Servers(2, self.folder, durability="commit") as servers:
            words = self.words("run", "--servers", servers.addresses, "--connect-timeout", 1,
                               "--recovery-limit", 60, "--json")
            self.expect(self.end_of(start(*words)), 0)
            old = servers.all[1]
            old.stop()
            worker = start(*words, "--resume")
            said = ""
            while "waiting up to 60 s for the servers" not in said:
                said = worker.stderr.readline()
                self.assertTrue(said, "the worker ended")
            servers.all[1] = Server(1, 2, self.folder, port=old.port, durability="commit")
            self.assertEqual(self.expect(self.end_of(worker), 0).json()["stopped_by"], "epochs")

    def restart(self, servers, rank):
        """Kills a server with kill -9 and restarts it on its port after a random pause."""
        old = servers.all[rank]
        old.kill()
        old.stop()
        time.sleep(self.random.uniform(0, 0.5))
        servers.all[rank] = Server(rank, self.SERVERS, self.folder, port=old.port,
                                   durability="commit", flags=self.limit())

    def limit(self):
        """The memory of a server: any, or so little that most or all rows are in files (MiB)."""
        return [f"--memory_limit_mb={self.random.choice(('0', '0.008', '0.000001'))}"]

    def test_kills_of_an_embedded_run(self):
        expected = self.undisturbed()[1]
        words = ("cistern", "train", self.config, "--out", self.folder / "run")
        worker = start(*words)
        for cycle in range(CYCLES):
            if not self.await_passes(worker, "run", 2):
                break
            worker.kill()
            finish(worker)
            # Also changes the number of servers, and their memory.
            worker = start(*words, "--resume", "--embedded-servers", 1 + cycle % 3,
                           *(flag.replace("_", "-") for flag in self.limit()))
        self.expect(self.end_of(worker), 0)
        model = self.folder / "run" / "model"
        self.assertEqual(self.rows({name: (model / name).read_bytes() for name in expected}),
                         self.rows(expected))

    def test_kills_of_a_run_with_dynamic_loss_scale(self):
        """A step that overflows float16 halves the loss scale; 2000 steps without overflow double it. The
        scale at the start of a pass is part of its commit."""
        def change(content):
            self.change(content)
            content["solver"].update(num_epochs=self.epochs, batchsize=1)
            content["cistern"]["activations"] = "float16"  # starts with a dynamic scale of 65536
        self.epochs = 16
        self.write_model(change)
        words = ("cistern", "train", self.config, "--json", "--out")
        whole = self.run_ok(*words, self.folder / "whole").json()
        self.assertGreater(whole["skipped_steps"], 2)
        worker = start(*words, self.folder / "run")
        for _ in range(8):
            if not self.await_passes(worker, "run", 1):
                break
            worker.kill()
            finish(worker)
            worker = start(*words, self.folder / "run", "--resume")
        summary = self.expect(self.end_of(worker), 0).json()
        self.assertEqual(summary["skipped_steps"], whole["skipped_steps"])
        models = [{str(path.relative_to(self.folder / name)): path.read_bytes()
                   for path in (self.folder / name).rglob("model/**/*") if path.is_file()}
                  for name in ("whole", "run")]
        self.assertEqual(*models)


class RunFolder(ProgramTest):
    """The contents of --out, and what --resume, --overwrite and --durability do with them."""

    def train(self, *flags):
        return run("cistern", "train", self.config, "--out", self.folder / "run", *flags)

    def test_existing_state_requires_resume_or_overwrite(self):
        state = self.folder / "run" / "state"
        self.expect(self.train(), 0)
        self.assertTrue((state / "manifest").is_dir())
        self.expect(self.train(), 2, "already holds the state of a run", "--resume", "--overwrite")
        self.expect(self.train("--resume", "--overwrite"), 2, "either resumed or overwritten")
        self.assertIn("nothing is left to train", self.expect(self.train("--resume"), 0).out)
        self.expect(self.train("--resume", "--set", "solver.batchsize=50"), 2,
                    "solver.batchsize is 50", "has 100")
        self.expect(self.train("--resume", "--set", "solver.seed=8"), 1, "seed is",
                    "fix: a resumed run needs the model file, the seed")
        more = self.expect(self.train("--resume", "--set", "solver.num_epochs=3", "--json"), 0)
        self.assertEqual(more.json()["samples"], 3 * self.SAMPLES)
        self.assertEqual(more.json()["resumed_from"], 2 * self.SAMPLES // 100)
        fresh = self.expect(self.train("--overwrite", "--json"), 0).json()
        self.assertEqual((fresh["samples"], fresh["resumed_from"]), (2 * self.SAMPLES, None))

    def test_without_durability_there_is_no_state(self):
        self.expect(self.train("--durability", "none"), 0)
        self.assertFalse((self.folder / "run" / "state").exists())
        self.expect(self.train("--resume"), 2, "no state to resume from")
        self.expect(self.train("--resume", "--durability", "none"), 2, "keeps no state")
        self.expect(self.train("--overwrite", "--no-save-model"), 0)
        self.assertFalse((self.folder / "run" / "state").exists())

    def test_resume_without_a_commit_starts_from_the_beginning(self):
        self.expect(self.train("--resume"), 0, "nothing was committed yet")

    def test_servers_decide_what_they_keep(self):
        with Servers(1, self.folder) as servers:
            self.expect(self.train("--servers", servers.addresses, "--resume"), 2,
                        "started without a data_dir")
            self.expect(self.train("--servers", servers.addresses, "--durability", "none"), 2,
                        "a fleet decides")


if __name__ == "__main__":
    if "--long" in sys.argv:
        at = sys.argv.index("--long")
        CYCLES = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
