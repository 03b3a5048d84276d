"""cistern tune: variants of a table's model and of a model file, resumed after an interrupt."""

import json
import math
import random
import signal
import time
import unittest

from programs import ProgramTest, finish, run, start, wait_for


def clicks(path, count, seed):
    draw = random.Random(seed)
    lines = ["label,age,user,city"]
    for _ in range(count):
        age, user, city = draw.randrange(18, 70), draw.randrange(50), draw.randrange(5)
        logit = 0.05 * (age - 44) + 1.5 * (user % 3 - 1) + 0.5 * (city % 2)
        lines.append(f"{int(draw.random() < 1 / (1 + math.exp(-logit)))},{age},u{user},c{city}")
    path.write_text("\n".join(lines) + "\n")


class TuneTest(ProgramTest):
    def setUp(self):
        super().setUp()
        clicks(self.folder / "clicks.csv", 3000, 1)
        clicks(self.folder / "test.csv", 500, 2)
        self.out = self.folder / "tuned"

    def tune(self, source, *flags, code=0):
        result = run("cistern", "tune", self.folder / source, "--out", self.out, "--json", *flags)
        self.assertEqual(result.code, code, str(result))
        return result

    def trials(self):
        lines = [json.loads(line) for line in (self.out / "tune.jsonl").read_text().splitlines()]
        self.assertEqual(lines[0]["format"], 1)
        return lines[1:]

    def test_a_table_is_tuned_and_the_best_run_predicts(self):
        said = self.tune("clicks.csv", "--trials", 4, "--set", "solver.num_epochs=3").json()
        self.assertEqual([one["trial"] for one in said["trials"]], [1, 2, 3, 4])
        best = max(said["trials"], key=lambda one: one["auc"])
        self.assertEqual(said["best"], best["run"])
        self.assertGreater(best["auc"], 0.7)
        self.assertEqual(len({one["learning_rate"] for one in said["trials"]}), 4)
        for one in said["trials"]:
            model = json.loads((self.out / f"trial-{one['trial']:03}.json").read_text())
            self.assertEqual(model["optimizer"]["adam_hparam"]["learning_rate"], one["learning_rate"])
            lines = (self.out / f"trial-{one['trial']:03}" / "metrics.jsonl").read_text().splitlines()
            aucs = [json.loads(line).get("auc") for line in lines if '"event":"eval"' in line]
            self.assertEqual(max(aucs), one["auc"])
        predicted = run("cistern", "predict", said["best"], "--input", self.folder / "test.csv", "--output", "-")
        self.assertEqual(predicted.code, 0, str(predicted))
        self.assertEqual(len(predicted.out.splitlines()), 501)

    def test_a_search_continues_with_more_trials_and_the_same_choices(self):
        flags = ("--set", "solver.num_epochs=2")
        self.tune("clicks.csv", "--trials", 2, *flags)
        before = self.trials()
        refused = self.tune("clicks.csv", "--trials", 3, *flags, code=2)
        self.assertIn("--resume", refused.json()["fix"])
        other = self.tune("clicks.csv", "--trials", 3, *flags, "--seed", 2, "--resume", code=2)
        self.assertIn("seed: 2 instead of 1", other.json()["error"])
        self.tune("clicks.csv", "--trials", 3, *flags, "--resume")
        after = self.trials()
        self.assertEqual(after[:2], before)
        self.assertEqual(len(after), 3)

    def test_a_killed_search_repeats_only_the_trial_that_was_cut_off(self):
        process = start("cistern", "tune", self.folder / "clicks.csv", "--out", self.out, "--trials", 3, "--set",
                        "solver.num_epochs=2")
        wait_for(lambda: (self.out / "tune.jsonl").exists() and len(self.trials()) >= 1, "a trial")
        process.send_signal(signal.SIGKILL)
        finish(process)
        before = self.trials()
        self.tune("clicks.csv", "--trials", 3, "--set", "solver.num_epochs=2", "--resume")
        after = self.trials()
        self.assertEqual(after[:len(before)], before)
        self.assertEqual([one["trial"] for one in after], [1, 2, 3])

    def test_a_killed_trial_continues_from_its_last_commit_with_the_same_result(self):
        flags = ("--trials", 2, "--set", "solver.num_epochs=12", "--set", "cistern.patience=0")
        metrics = self.out / "trial-001" / "metrics.jsonl"
        process = start("cistern", "tune", self.folder / "clicks.csv", "--out", self.out, *flags)
        wait_for(lambda: metrics.exists() and metrics.read_text().count('"event":"eval"') >= 3, "evaluations")
        process.send_signal(signal.SIGKILL)
        finish(process)
        self.assertEqual(self.trials(), [])
        self.tune("clicks.csv", *flags, "--resume")
        self.assertIn('"event":"resume"', metrics.read_text())
        self.assertFalse((self.out / "trial-001" / "state").exists())
        continued = self.trials()
        self.out = self.folder / "undisturbed"
        self.tune("clicks.csv", *flags)
        for one, other in zip(continued, self.trials()):
            self.assertEqual([one[k] for k in ("auc", "logloss", "curve", "state")],
                             [other[k] for k in ("auc", "logloss", "curve", "state")])

    def test_a_new_search_continues_no_trial_of_an_older_one(self):
        state = self.out / "trial-002" / "state"
        state.mkdir(parents=True)
        (state / "rows").write_text("of another search", encoding="utf-8")
        (self.out / "tune.jsonl").write_text("{}\n", encoding="utf-8")
        flags = ("--trials", 1, "--set", "solver.num_epochs=1")
        self.tune("clicks.csv", *flags, "--overwrite")
        self.assertFalse(state.exists())

    def test_time_ends_the_search_and_a_model_file_can_be_tuned(self):
        made = run("cistern", "train", self.folder / "clicks.csv", "--model", "dcnv2", "--out", self.folder / "run",
                   "--set", "solver.num_epochs=2")
        self.assertEqual(made.code, 0, str(made))
        begin = time.time()
        said = self.tune("run/model.json", "--trials", 1000, "--time", "5s").json()
        self.assertLess(time.time() - begin, 60)
        self.assertGreater(len(said["trials"]), 0)
        self.assertLess(len(said["trials"]), 1000)
        self.assertEqual({one["state"] for one in said["trials"]} - {"finished", "stopped"}, set())

    def test_values_to_choose_from_are_kept(self):
        said = self.tune("clicks.csv", "--trials", 5, "--learning-rate", "0.002,0.004", "--dim", "5", "--depth", "1",
                         "--set", "solver.num_epochs=1").json()
        for one in said["trials"][1:]:
            self.assertIn(one["learning_rate"], (0.002, 0.004))
            self.assertEqual((one["dim"], one["depth"]), (5, 1))


if __name__ == "__main__":
    unittest.main()
