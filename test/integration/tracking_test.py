"""cistern train --log, read back by TensorBoard's and MLflow's own packages.

Uses the installed packages, or those that scripts/test.sh installs with pip into build/tensorboard and build/mlflow.
Exit code 77 (skipped) if there is neither.
"""

import json
import os
import sys
import unittest

from programs import ROOT, ProgramTest, finish, start, wait_for

os.environ["MLFLOW_DISABLE_TELEMETRY"] = os.environ["DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
for folder in ("tensorboard", "mlflow"):
    sys.path.insert(0, str(ROOT / "build" / folder))  # before older versions of what they need
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as missing:
    EventAccumulator, without_tensorboard = None, missing
try:
    from mlflow.tracking import MlflowClient
except ImportError as missing:
    MlflowClient, without_mlflow = None, missing


class TrackingTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "run"

    def train(self, *flags):
        self.run_ok("cistern", "train", self.config, "--out", self.out, *flags)
        return self.lines()

    def lines(self, event=None):
        lines = [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if event in (None, line["event"])]

    def expected(self, event, name):
        return [(line["iter"], line[name]) for line in self.lines(event) if name in line]

    def check(self, read):
        """read(tag): the (step, value) pairs of a figure."""
        for event, name, tag in (("train", "loss", "train/loss"), ("eval", "auc", "eval/auc"),
                                 ("eval", "logloss", "eval/logloss"), ("pass", "rows", "pass/rows"),
                                 ("final", "auc", "final/auc")):
            expected = self.expected(event, name)
            self.assertGreater(len(expected), 0, tag)
            found = read(tag)
            self.assertEqual([step for step, _ in found], [step for step, _ in expected], tag)
            for (_, value), (_, line) in zip(found, expected):
                self.assertAlmostEqual(value, line, delta=1e-6 * abs(line) + 1e-9)

    def tensorboard(self, tag):
        events = EventAccumulator(str(self.out / "tensorboard"), size_guidance={"scalars": 0})
        events.Reload()
        return [(scalar.step, scalar.value) for scalar in events.Scalars(tag)]

    def mlflow(self):
        client = MlflowClient(tracking_uri=(self.out / "mlruns").as_uri())
        runs = client.search_runs(["0"])
        self.assertEqual(len(runs), 1)
        return client, runs[0]

    def mlflow_figure(self, tag):
        client, run = self.mlflow()
        return [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, tag)]

    def interrupted_then_resumed(self, tracker):
        """A run that ends in the middle of a pass, after figures that its resumption trains again."""
        def change(content):
            content["solver"].update(display=1, num_epochs=20)
        self.write_model(change)
        training = start("cistern", "train", self.config, "--out", self.out, "--log", tracker)
        path = self.out / "metrics.jsonl"
        wait_for(lambda: path.exists() and len(self.lines("pass")) > 2, "passes")
        training.kill()
        finish(training)
        self.run_ok("cistern", "train", self.config, "--out", self.out, "--log", tracker, "--resume")

    @unittest.skipUnless(EventAccumulator, "no tensorboard")
    def test_tensorboard_reads_the_events(self):
        self.train("--log", "tensorboard")
        self.check(self.tensorboard)

    @unittest.skipUnless(EventAccumulator, "no tensorboard")
    def test_tensorboard_shows_a_resumed_run_as_one(self):
        self.interrupted_then_resumed("tensorboard")
        self.assertEqual(len(list((self.out / "tensorboard").iterdir())), 2)
        self.check(self.tensorboard)

    @unittest.skipUnless(MlflowClient, "no mlflow")
    def test_mlflow_reads_the_run(self):
        self.train("--log", "mlflow", "--run-id", "nightly-1")
        self.check(self.mlflow_figure)
        client, run = self.mlflow()
        self.assertEqual((run.info.status, run.info.run_name), ("FINISHED", "run"))
        self.assertEqual(run.data.tags["cistern.run_id"], "nightly-1")
        self.assertEqual(run.data.params["solver.batchsize"], "100")
        self.assertIn("layers.0.type", run.data.params)
        self.assertEqual(client.get_experiment("0").name, "Default")
        self.assertGreater(run.info.end_time, run.info.start_time)
        self.assertEqual(json.loads((self.out / "run.json").read_text())["run_id"], "nightly-1")

    @unittest.skipUnless(MlflowClient, "no mlflow")
    def test_mlflow_shows_a_resumed_run_as_one(self):
        self.interrupted_then_resumed("mlflow")
        self.check(self.mlflow_figure)
        self.assertEqual(self.mlflow()[1].info.status, "FINISHED")

    def test_an_unknown_tracker_is_refused_before_training(self):
        result = finish(start("cistern", "train", self.config, "--out", self.out, "--log", "wandb"))
        self.expect(result, 2, "wandb", "--log")


if __name__ == "__main__":
    if not EventAccumulator and not MlflowClient:
        print(f"skipped: {without_tensorboard}; {without_mlflow}")
        sys.exit(77)
    unittest.main()
