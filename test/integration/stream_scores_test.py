"""The scores of a stream: each pass before it is trained, or a part of it."""

import json
import unittest

from programs import Samples, Servers, finish, start
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


if __name__ == "__main__":
    unittest.main()
