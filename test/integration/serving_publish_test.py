"""A serving folder follows a training, and clients follow the folder."""

import os
import random
import shutil
import signal
import time
import unittest

from programs import finish, run as run_program, start
from serving_folder import ServingTest
from serving_library import Model, predictions_of


class Publishing(ServingTest):

    def test_publish_follows_a_training_and_a_client_follows_publish(self):
        """Each answer is that of the commit which it names."""
        run = self.folder / "run"
        small = ("--set", "cistern.pass_memory_mb=1", "--set", "solver.num_epochs=12")
        training = start("cistern", "train", self.config, "--out", run, "--durability", "commit",
                         *small)
        self.addCleanup(training.kill)
        while not (run / "state").is_dir() and training.poll() is None:
            time.sleep(0.01)
        publisher = start("cistern", "publish", self.config, "--follow", run, "--out",
                          self.serving, "--poll-ms", 5, "--keep", 1000)
        self.addCleanup(publisher.kill)
        while not (self.serving / "HEAD").exists():
            if publisher.poll() is not None:
                self.fail(finish(publisher))
            time.sleep(0.01)
        answers = {}
        few = self.samples[:20]
        with Model(self.serving, "poll_ms=1") as model:
            last = 0
            while True:
                done = training.poll() is not None and self.published() == self.newest(run)
                predictions, commit = model.predict(few)
                self.assertGreaterEqual(commit, last)
                last = commit
                answers.setdefault(commit, predictions)
                self.assertEqual(answers[commit], predictions)
                if done and commit == self.published():
                    break
        result = finish(training)
        self.assertEqual(result.code, 0, result)
        publisher.send_signal(signal.SIGINT)
        result = finish(publisher)
        self.assertEqual(result.code, 0, result)
        self.assertGreater(len(answers), 1)
        compared = 0
        for commit, predictions in answers.items():
            with self.subTest(commit=commit):
                folder = self.folder / "whole"
                shutil.rmtree(folder, ignore_errors=True)
                exported = run_program("cistern", "export", "serving", self.config, "--state",
                                    f"{run}@{commit}", "--out", folder)
                if exported.code == 2:  # the training no longer keeps that commit
                    continue
                self.assertEqual(exported.code, 0, exported)
                with Model(folder) as whole:
                    self.assertEqual(whole.predict(few), (predictions, commit))
                compared += 1
        self.assertGreater(compared, 0)
        self.run_ok("cistern", "serving", "verify", self.serving)

    def test_a_killed_publisher_never_leaves_a_torn_version(self):
        run = self.train("run", "--durability", "commit")
        draw = random.Random(5)
        for _ in range(int(os.environ.get("CISTERN_KILLS", "10"))):
            publisher = start("cistern", "export", "serving", self.config, "--state", run, "--out",
                              self.serving, "--keep", 2)
            time.sleep(draw.uniform(0, 0.06))
            publisher.kill()
            publisher.communicate()
            if not (self.serving / "HEAD").exists():
                continue
            self.run_ok("cistern", "serving", "verify", self.serving)
        self.run_ok("cistern", "publish", self.config, "--follow", run, "--out", self.serving,
                    "--once")
        self.assertEqual(predictions_of(self.predict(self.serving)),
                         self.expected("--model", run))

    def test_rollback_and_forward(self):
        run = self.train()
        self.export("--model", run)
        first = self.published_name()
        self.export("--model", run, "--precision", "int8")
        second = self.published_name()
        with Model(self.serving, "poll_ms=0") as model:
            self.assertEqual(model.describe()["version"], second)
            self.run_ok("cistern", "serving", "rollback", self.serving)
            self.assertTrue(model.follow())
            self.assertFalse(model.follow())
            self.assertEqual(model.describe()["version"], first)
            self.run_ok("cistern", "serving", "rollback", self.serving, "--to", second)
            self.assertTrue(model.follow())
        refused = run_program("cistern", "serving", "rollback", self.serving, "--to", "12345")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn(first, refused.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
