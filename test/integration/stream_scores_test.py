"""The scores of a stream: each pass before it is trained, or a part of it."""

import json
import re
import signal
import unittest

from programs import Samples, Servers, finish, start, wait_for
from workers import WorkersTest


class ScoresTest(WorkersTest):
    """Some batches of each pass are scored before it is trained."""

    FIGURES = ("auc", "logloss", "calibration_ratio", "scored_samples", "auc_standard_error")

    def setUp(self):
        super().setUp()
        self.write_model(lambda content: content["solver"].update(num_epochs=1, batchsize=50, eval_interval=0))
        self.source = self.folder / "in"
        self.source.mkdir()
        for i in range(9):
            Samples(500, seed=40 + i).write(self.source / f"{i}.norm")

    def flags(self, most):
        return ("--stream", self.source, "--once", "--set", "cistern.streams=3", "--set", "cistern.stream.samples=600", "--set",
                f"cistern.stream.score_samples={most}")

    def train(self, out, most):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / out, "--threads", 1, *self.flags(most))
        folder = self.folder / out / "model"
        return self.figures(out), {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("part-*")}

    def figures(self, out):
        return {line["samples"]: [line.get(name) for name in self.FIGURES] for line in self.lines(out)
                if line["event"] == "pass" and "behind_messages" in line}

    def cut_last_pass(self, out):
        """Removes the line of the last pass, as a kill between its commit and its line does."""
        path = self.folder / out / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        last = max(i for i, line in enumerate(lines) if json.loads(line)["event"] == "pass")
        path.write_text("".join(lines[:last]))

    def test_the_draw_is_the_same_whoever_reads_and_changes_no_bit(self):
        everything, expected_model = self.train("all", 0)
        drawn, model = self.train("drawn", 150)
        self.assertEqual(model, expected_model)
        self.assertEqual(drawn.keys(), everything.keys())
        self.assertGreater(len(drawn), 5)
        for samples, (auc, logloss, _, count, error) in drawn.items():
            of_all = everything[samples]
            self.assertEqual(count, 150)
            self.assertGreater(of_all[3], count)
            self.assertNotEqual(auc, of_all[0])
            self.assertAlmostEqual(error / of_all[4], (of_all[3] / count) ** 0.5, delta=0.6)
            self.assertLess(abs(auc - of_all[0]), 4 * error)
        with Servers(1, self.folder) as servers:
            for worker in self.start_workers("two", servers, 2, *self.flags(150)):
                self.expect(finish(worker), 0)
        self.assertEqual(self.figures("two").keys(), drawn.keys())
        for samples, figures in self.figures("two").items():
            for found, expected in zip(figures, drawn[samples]):
                self.assertAlmostEqual(found, expected, 4)

    def test_a_pass_that_is_trained_again_has_the_same_figures(self):
        expected, _ = self.train("whole", 150)
        process = start("cistern", "train", self.config, "--out", self.folder / "killed", "--threads", 1, *self.flags(150))
        self.addCleanup(self.end, process)
        self.await_passes("killed", 3, [process])
        process.kill()
        process.communicate()
        self.cut_last_pass("killed")
        self.train("killed", 150)
        found = self.figures("killed")
        self.assertEqual(found, {samples: expected[samples] for samples in found})
        self.assertEqual(max(found), max(expected))


class CalibrationTest(WorkersTest):
    """The mean prediction stays near the share of positives, also where some rows lack a label."""

    ROWS = 600  # of a file, which is a pass

    def setUp(self):
        super().setUp()
        self.source = self.folder / "in"
        self.source.mkdir()

    def write_model_with(self, **cistern):
        def change(content):
            content["solver"].update(num_epochs=1, batchsize=50, eval_interval=0)
            content["cistern"] = cistern
            content["layers"][-2]["fc_param"]["bias_value"] = 0
        self.write_model(change)

    def add_file(self, number, label=None):
        samples = Samples(self.ROWS, seed=60 + number)
        if label is not None:
            samples.rows = [(label, *row[1:]) for row in samples.rows]
        samples.write(self.source / f"{number}.norm")

    def train(self, out, *flags):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / out, "--stream", self.source, "--once",
                    "--threads", 1, "--set", f"cistern.stream.samples={self.ROWS}", *flags)
        return self.values(out)

    def values(self, out):
        """The saved rows and dense weights, without the files that say how many passes there were."""
        folder = self.folder / out / "model"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("part-*") if path.suffix != ".json"}

    def ratios(self, out):
        return [line.get("calibration_ratio") for line in self.lines(out) if line["event"] == "pass" and "behind_messages" in line]

    def steps(self, out):
        """The number of the last step that was written."""
        path = self.folder / out / "metrics.jsonl"
        iterations = re.findall(r'"iter":\s*(\d+)', path.read_text() if path.exists() else "")
        return int(iterations[-1]) if iterations else 0

    def warnings(self, out):
        return [line["message"] for line in self.lines(out) if line["event"] == "warning" and "samples of the stream" in line["message"]]

    def test_rows_of_one_class_do_not_ruin_the_model(self):
        for i in range(5):
            self.add_file(i, label=0.0 if i == 3 else None)
        self.write_model_with(calibrate=0.5)
        self.train("calibrated")
        self.assertIn("0 of the last 600 samples", self.warnings("calibrated")[0])
        self.assertEqual(len(self.warnings("calibrated")), 1)
        # The odds are halved: a share of 1/2 becomes 1/3.
        self.assertAlmostEqual(self.ratios("calibrated")[4], 2 / 3, delta=0.1)
        self.write_model_with()
        self.train("plain")
        self.assertLess(self.ratios("plain")[4], 0.4)

    def test_a_run_that_continues_knows_the_share(self):
        """It is part of the position, with the rows that are not judged yet."""
        self.write_model_with(calibrate=0.1)
        for i in range(2):
            self.add_file(i, label=0.0)
        self.train("parts")
        self.assertEqual(self.warnings("parts"), [])  # 120 positives were expected
        for i in range(2, 6):
            self.add_file(i, label=0.0 if i < 4 else None)
        parts = self.train("parts")
        self.assertIn("0 of the last 2400 samples", self.warnings("parts")[0])
        self.assertEqual(parts, self.train("whole"))

    def test_stops_inside_a_pass_change_no_bit(self):
        """Of 70,000 samples a pass the last 65,536 are scored after it: a stop waits for the pass, or leaves all of them."""
        self.ROWS = 70_000
        self.write_model_with(calibrate=0.2)
        for i in range(2):
            samples = Samples(3500, seed=60 + i)
            samples.rows *= 20
            samples.write(self.source / f"{i}.norm")
        small = ("--set", "solver.batchsize=20")
        whole = self.train("whole", *small)
        code, inside, stops = 130, False, 0
        while code != 0:
            process = start("cistern", "train", self.config, "--out", self.folder / "stopped", "--stream", self.source, "--once",
                            "--threads", 1, "--set", f"cistern.stream.samples={self.ROWS}", *small)
            self.addCleanup(self.end, process)
            stops += 1
            wait_for(lambda: process.poll() is not None or self.steps("stopped") > 2200 * stops, "steps")
            inside = inside or self.steps("stopped") < self.ROWS // 20 * 2
            process.send_signal(signal.SIGTERM)
            finish(process)
            code = process.returncode
            self.assertIn(code, (0, 130, -signal.SIGTERM))
        self.assertTrue(inside)
        self.assertEqual(self.values("stopped"), whole)


if __name__ == "__main__":
    unittest.main()
