"""Weights of samples: in tables, in data sets, with several workers, in every command that shows a metric."""

import csv
import json
import math
import pathlib
import random
import shutil
import struct
import tempfile
import unittest

from programs import Samples, Servers, finish, start, wrapped
from workers import WorkersTest


def weighted_auc(rows):
    """rows: (label, score, weight)."""
    pairs = right = 0.0
    for y, a, v in rows:
        for z, b, w in rows:
            if y == 1 and z == 0:
                pairs += v * w
                right += v * w * ((a > b) + 0.5 * (a == b))
    return right / pairs


def weighted_logloss(rows):
    return -sum(w * math.log(p if y else 1 - p) for y, p, w in rows) / sum(w for _, _, w in rows)


class SeveralWorkers(WorkersTest):
    """1, 2 and 3 workers train the same model of weighted samples."""

    def write_weighted(self, path, count, seed):
        samples, draw = Samples(count, seed), random.Random(seed)
        content = bytearray(wrapped(struct.pack("<8q", 1, count, 2, Samples.DENSE, Samples.SLOTS, 0, 0, 0), "Sum"))
        for label, dense, keys in samples.rows:
            weight = draw.choice([0, 0.5, 1, 4])
            record = struct.pack(f"<{2 + Samples.DENSE}f", label, weight, *dense)
            for slot in keys:
                record += struct.pack(f"<i{len(slot)}I", len(slot), *slot)
            content += wrapped(record, "Sum")
        path.write_bytes(content)

    def setUp(self):
        super().setUp()
        self.write_weighted(self.train_file, self.SAMPLES, 1)
        self.write_weighted(self.test_file, self.SAMPLES // 4, 2)

    def compare(self, change):
        self.write_model(change)
        outcomes = []
        for turn, count in enumerate((1, 2, 3, 3)):
            with self.subTest(workers=count), Servers(2, self.folder) as fleet:
                name = f"run-{turn}"
                self.train(name, fleet, count)
                outcomes.append(self.outcome(name, fleet))
                self.expect_close(self.rows(outcomes[-1][1], "deep"), self.rows(outcomes[0][1], "deep"))
                self.expect_same_lines(self.lines(name), self.lines("run-0"), pass_lines=False)
        self.assertEqual(outcomes[2], outcomes[3])

    def test_in_the_order_of_the_files(self):
        self.compare(lambda model: model.update(cistern={"sample_weights": True}))

    def test_in_streams(self):
        self.compare(lambda model: model.update(cistern={"sample_weights": True, "streams": 3}))


class Tables(unittest.TestCase):
    """A table in which rows of weight 0 tell the opposite of the others."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_weights_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.write("train.csv", cls.rows_of(6000, 1))
        cls.test = cls.rows_of(600, 2)
        cls.write("test.csv", cls.test)
        cls.write("new.csv", [{"user": row["user"], "city": row["city"]} for row in cls.test])
        cls.trained = cls.cistern("train", "train.csv", "--out", "run", "--weight", "w", "--valid", "test.csv")

    @classmethod
    def cistern(cls, *words):
        return finish(start("cistern", *words, cwd=cls.folder))

    @classmethod
    def write(cls, name, rows):
        with open(cls.folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    @staticmethod
    def rows_of(count, seed):
        draw = random.Random(seed)
        rows = []
        for _ in range(count):
            user, city, weight = draw.randrange(30), draw.randrange(5), draw.choice([0, 0, 0.5, 2])
            chance = 1 / (1 + math.exp(-(2 * (user % 2) - 1 + 0.3 * city)))
            click = int(draw.random() < chance)
            rows.append({"click": click if weight else 1 - click, "user": user, "city": f"c{city}", "w": weight})
        return rows

    def ok(self, *words):
        result = self.cistern(*words)
        self.assertEqual(result.code, 0, str(result))
        return result

    def predictions(self, path):
        """(label, prediction, weight) of the test rows; the last column of each line is the prediction."""
        with open(self.folder / path, newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file) if line]
        scores = [float(line[-1]) for line in lines if not line[-1][0].isalpha()]
        self.assertEqual(len(scores), len(self.test))
        return [(row["click"], score, row["w"]) for row, score in zip(self.test, scores)]

    def test_rows_of_weight_0_teach_nothing(self):
        self.assertEqual(self.trained.code, 0, str(self.trained))
        self.assertIn("weight 'w'", self.trained.err)
        self.ok("predict", "run", "--input", "test.csv", "--output", "p.csv")
        rows = self.predictions("p.csv")
        self.assertGreater(weighted_auc(rows), 0.7)
        self.assertLess(weighted_auc([(y, p, 1.0 - (w > 0)) for y, p, w in rows]), 0.3)
        # The bias starts at the weighted share of positives.
        share = sum(r["w"] for r in self.rows_of(6000, 1) if r["click"]) / sum(r["w"] for r in self.rows_of(6000, 1))
        model = json.loads((self.folder / "run/model.json").read_text(encoding="utf-8"))
        self.assertTrue(model["cistern"]["sample_weights"])
        biases = [layer["fc_param"]["bias_value"] for layer in model["layers"]
                  if "bias_value" in layer.get("fc_param", {})]
        self.assertAlmostEqual(biases[0], math.log(share / (1 - share)), 3)

    def test_every_command_has_the_same_weighted_metrics(self):
        predicted = self.ok("predict", "run", "--input", "test.csv", "--output", "p.csv", "--json").json()
        rows = self.predictions("p.csv")
        auc, loss = weighted_auc(rows), weighted_logloss(rows)
        final = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()][-1]
        self.ok("export", "serving", "run", "--out", "served")
        evaluated = self.ok("eval", "run", "--data", "run/data/test/file_list.txt", "--json").json()
        served = self.ok("predict", "served", "--input", "test.csv", "--output", "s.csv", "--json").json()
        from_files = self.ok("predict", "served", "--data", "run/data/test/file_list.txt", "--output", "d.tsv", "--json").json()
        for name, found in (("predict", predicted), ("train", final), ("eval", evaluated), ("served", served),
                            ("served files", from_files)):
            self.assertAlmostEqual(found["auc"], auc, 5, name)
            self.assertAlmostEqual(found["logloss"], loss, 5, name)
        scores = json.loads((self.folder / "run/evaluation.json").read_text(encoding="utf-8"))
        self.assertAlmostEqual(scores["weight"], sum(w for _, _, w in rows), 6)
        self.assertEqual(scores["samples"], sum(w > 0 for _, _, w in rows))
        self.assertAlmostEqual(scores["predicted"], sum(p * w for _, p, w in rows), 3)
        self.ok("report", "run", "--out", "report.html", "--importance")

    def test_predictions_need_no_weight(self):
        self.ok("predict", "run", "--input", "test.csv", "--output", "p.csv")
        self.ok("predict", "run", "--input", "new.csv", "--output", "n.csv")
        self.assertEqual([p for _, p, _ in self.predictions("p.csv")], [p for _, p, _ in self.predictions("n.csv")])

    def test_a_column_that_looks_like_a_weight_is_named(self):
        self.write("named.csv", [{"sample_weight" if k == "w" else k: v for k, v in row.items()} for row in self.rows_of(600, 1)])
        shown = self.ok("init", "named.csv", "--out", "named")
        self.assertIn("looks like a weight of the sample: name it as the weight", shown.out + shown.err)
        model = json.loads((self.folder / "named/model.json").read_text(encoding="utf-8"))
        self.assertNotIn("sample_weights", model["cistern"])
        self.ok("init", "named.csv", "--out", "weighted", "--weight", "sample_weight")
        self.ok("data", "convert", "--recipe", "weighted", "--input", "named.csv", "--part", "train", "--out", "weighted/data/train")
        self.ok("data", "convert", "--recipe", "weighted", "--input", "named.csv", "--part", "test", "--out", "weighted/data/test")
        self.ok("train", "weighted/model.json", "--out", "weighted/run", "--set", "solver.num_epochs=1")

    def test_bad_weights_are_refused_with_their_place(self):
        for text, error in (("-2", "holds -2, and a weight is a number from 0 on (--weight)"), ("nan", "has no value in 1 rows"), ("inf", "infinite"), ("much", "holds text")):
            rows = self.rows_of(300, 3)
            rows[7]["w"] = text
            self.write("bad.csv", rows)
            result = self.cistern("train", "bad.csv", "--out", "bad", "--weight", "w")
            self.assertEqual(result.code, 2, str(result))
            self.assertIn(error, result.err)
            result = self.cistern("data", "convert", "--input", "bad.csv", "--out", "bad_data", "--label", "click", "--weight", "w")
            self.assertEqual(result.code, 4, str(result))
            self.assertIn("bad.csv: line 9: column 'w'", result.err)

    def test_a_factor_on_all_weights_changes_nothing(self):
        predictions = []
        for factor in (1, 1e-6, 1000):
            self.write("scaled.csv", [{**row, "w": f"{row['w'] * factor:.9g}"} for row in self.rows_of(1000, 4)])
            self.ok("train", "scaled.csv", "--out", "scaled", "--overwrite", "--weight", "w", "--set", "solver.num_epochs=2")
            self.ok("predict", "scaled", "--input", "test.csv", "--output", "p.csv")
            predictions.append([p for _, p, _ in self.predictions("p.csv")])
        self.assertGreater(max(predictions[0]) - min(predictions[0]), 0.05)
        for a, b, c in zip(*predictions):
            self.assertAlmostEqual(a, b, 4)
            self.assertAlmostEqual(a, c, 4)

    def test_a_row_that_has_all_the_weight_is_refused(self):
        rows = self.rows_of(400, 3)
        rows[7]["w"] = 1e9
        self.write("heavy.csv", rows)
        result = self.cistern("train", "heavy.csv", "--out", "heavy", "--weight", "w")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("rows count as 1: a few have nearly all of the weight, which would ruin the model (--weight)", result.err)

    def test_later_data_of_a_run_brings_its_weights(self):
        more = self.rows_of(2000, 5)
        self.write("more.csv", more)
        self.ok("train", "train.csv", "--out", "grown", "--weight", "w", "--valid", "test.csv", "--set", "solver.num_epochs=1")
        self.ok("train", "grown", "--resume", "--more", "more.csv", "--set", "solver.num_epochs=1")
        self.write("unweighted.csv", [{k: v for k, v in row.items() if k != "w"} for row in more])
        result = self.cistern("train", "grown", "--resume", "--more", "unweighted.csv")
        self.assertNotEqual(result.code, 0)
        self.assertIn("there is no column 'w', which the recipe reads (the weight)", result.err)


class SampledNegatives(unittest.TestCase):
    """A table with few clicks, whose predictions must be those for all rows."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_negatives_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for name, count, seed in (("train.csv", 40000, 1), ("test.csv", 20000, 2), ("day2.csv", 10000, 3)):
            cls.write(name, cls.rows_of(count, seed))
        cls.share = cls.share_of("test.csv")

    @staticmethod
    def rows_of(count, seed):
        draw = random.Random(seed)
        for _ in range(count):
            user, city = draw.randrange(20), draw.randrange(5)
            chance = 1 / (1 + math.exp(4.2 - 1.2 * (user % 2) - 0.4 * city))
            yield {"click": int(draw.random() < chance), "user": f"u{user}", "city": f"c{city}"}

    @classmethod
    def write(cls, name, rows):
        with open(cls.folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["click", "user", "city"])
            writer.writeheader()
            writer.writerows(rows)

    @classmethod
    def share_of(cls, name):
        with open(cls.folder / name, newline="", encoding="utf-8") as file:
            labels = [int(row["click"]) for row in csv.DictReader(file)]
        return sum(labels) / len(labels)

    def run_of(self, *words, code=0):
        result = finish(start("cistern", *words, cwd=self.folder))
        self.assertEqual(result.code, code, str(result))
        return result

    def mean_prediction(self, run):
        """Of all rows of the test table, and by whether the user clicks more."""
        self.run_of("predict", run, "--input", "test.csv", "--output", "p.csv", "--keep", "user")
        with open(self.folder / "p.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        scores = {odd: [float(row["prediction"]) for row in rows if int(row["user"][1:]) % 2 == odd] for odd in (0, 1)}
        return (sum(map(sum, scores.values())) / len(rows), *(sum(s) / len(s) for s in scores.values()))

    def test_predictions_are_those_for_all_rows(self):
        trained = self.run_of("train", "train.csv", "--negative-rate", 0.1, "--model", "lr", "--out", "tenth")
        self.assertIn("negative ones are left out", trained.err)
        self.assertNotIn("ratio", trained.err)
        model = json.loads((self.folder / "tenth/model.json").read_text(encoding="utf-8"))
        self.assertEqual(model["cistern"]["negative_rate"], 0.1)
        facts = self.run_of("data", "inspect", "tenth/data/train/file_list.txt", "--json").json()
        self.assertLess(facts["samples"], 10000)
        self.run_of("train", "train.csv", "--model", "lr", "--out", "whole")
        tenth, whole = self.mean_prediction("tenth"), self.mean_prediction("whole")
        self.assertLess(abs(tenth[0] / self.share - 1), 0.1, (tenth, self.share))
        for a, b in zip(tenth, whole):
            self.assertLess(abs(a / b - 1), 0.15, (tenth, whole))

        # The same without calibration on held-out rows: the loss knows.
        self.run_of("train", "tenth/model.json", "--out", "uncalibrated", "--set", "cistern.calibrate=0")
        self.assertLess(abs(self.mean_prediction("uncalibrated")[0] / self.share - 1), 0.15)
        # Without the key, the predictions are those of the sampled data, and a warning says what to set.
        wrong = self.run_of("train", "tenth/model.json", "--out", "wrong", "--set", "cistern.calibrate=0",
                            "--set", "cistern.negative_rate=1")
        self.assertGreater(self.mean_prediction("wrong")[0], 3 * self.share)
        self.assertIn("set cistern.negative_rate", wrong.err)

        for bad in (-1, 2, "nan"):
            refused = self.run_of("train", "train.csv", "--negative-rate", bad, "--out", "bad", code=2)
            self.assertIn("above 0 and at most 1", refused.err)

        # Another day: how its negatives are to be taken must be said.
        more = ("train", "tenth", "--resume", "--more", "day2.csv")
        self.assertIn("add --negative-rate 0.1", self.run_of(*more, code=2).err)
        self.assertIn("not on 0.5", self.run_of(*more, "--negative-rate", 0.5, code=2).err)
        self.run_of(*more, "--negative-rate", 0.1)
        facts = self.run_of("data", "inspect", "tenth/more/day2/file_list.txt", "--json").json()
        self.assertLess(facts["samples"], 2500)
        self.assertLess(abs(self.mean_prediction("tenth")[0] / self.share - 1), 0.15)
        refused = self.run_of("train", "whole", "--resume", "--more", "day2.csv", "--negative-rate", 0.1, code=2)
        self.assertIn("was trained on all negative rows", refused.err)

    def test_days_that_were_sampled_before(self):
        """Rows that are held out of them lack as many negative ones. Two days, as errors add up."""
        self.run_of("train", "train.csv", "--negative-rate", 0.1, "--model", "lr", "--out", "days")
        draw = random.Random(4)
        for name, seed in (("day3.csv", 4), ("day4.csv", 5)):
            self.write(name, (row for row in self.rows_of(40000, seed) if row["click"] or draw.random() < 0.1))
            told = self.run_of("train", "days", "--resume", "--more", name, "--negative-rate", 1)
            self.assertNotIn("the mean prediction is", told.err)
            sums = json.loads((self.folder / "days/evaluation.json").read_text(encoding="utf-8"))
            self.assertLess(abs(sums["predicted"] / sums["weight"] / self.share - 1), 0.15)
        self.assertLess(abs(self.mean_prediction("days")[0] / self.share - 1), 0.08)
        # Data that is named, and the rows of a later day that is sampled here, lack none.
        facts = self.run_of("eval", "days", "--data", "test.csv", "--json").json()
        self.assertEqual(facts["samples"], 20000)
        self.run_of("train", "days", "--resume", "--more", "day2.csv", "--negative-rate", 0.1)
        model = json.loads((self.folder / "days/model.json").read_text(encoding="utf-8"))
        self.assertEqual(model["cistern"]["eval_negative_rate"], 1)

    def test_the_weight_of_positives_multiplies_the_odds(self):
        self.run_of("init", "train.csv", "--model", "lr", "--out", "made")
        for part in ("train", "test"):
            self.run_of("data", "convert", "--recipe", "made", "--input", "train.csv", "--part", part, "--out",
                        f"made/data/{part}")
        set_ = ["--set", "cistern.calibrate=0"]
        self.run_of("train", "made/model.json", "--out", "plain", *set_)
        heavy = self.run_of("train", "made/model.json", "--out", "heavy", *set_, "--set", "cistern.positive_weight=8")
        self.assertIn("cistern.positive_weight multiplies the odds by 8", heavy.err)
        for a, b in zip(self.mean_prediction("plain"), self.mean_prediction("heavy")):
            odds = (b / (1 - b)) / (a / (1 - a))
            self.assertTrue(5.5 < odds < 10, (a, b, odds))


if __name__ == "__main__":
    unittest.main(verbosity=2)
