"""`cistern init` and `cistern train` with a table: from a CSV file to a model that predicts."""

import csv
import io
import json
import math
import pathlib
import random
import shutil
import tempfile
import unittest

from programs import finish, start


def auc_of(labels, scores):
    ones = [s for s, y in zip(scores, labels) if y]
    zeros = [s for s, y in zip(scores, labels) if not y]
    wins = sum((a > b) + 0.5 * (a == b) for a in ones for b in zeros)
    return wins / (len(ones) * len(zeros))


def rows_of(count, seed):
    """Rows whose click depends on city, price and user; the probability is known."""
    draw = random.Random(seed)
    for i in range(count):
        city, user = draw.randrange(6), draw.randrange(40)
        price = draw.lognormvariate(3, 1.2)
        logit = (1.4 if city in (0, 3) else -0.7) - 0.6 * (math.log(price) - 3) + 0.8 * math.sin(user)
        chance = 1 / (1 + math.exp(-logit))
        yield {"row": 10**6 * seed + i, "click": int(draw.random() < chance), "city": f"c{city}",
               "user_id": user, "price": f"{price:.2f}", "noise": f"{draw.gauss(0, 1):.4f}"}, chance


def write(path, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


class TableTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_table_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        write(cls.folder / "train.csv", [row for row, _ in rows_of(6000, 1)])
        made = list(rows_of(1500, 2))
        cls.labels = [row["click"] for row, _ in made]
        cls.best = auc_of(cls.labels, [chance for _, chance in made])
        write(cls.folder / "labelled.csv", [row for row, _ in made])
        write(cls.folder / "new.csv",
              [{k: v for k, v in row.items() if k not in ("click", "row")} for row, _ in made])

    def cistern(self, *words):
        return finish(start("cistern", *words, cwd=self.folder))

    def expect(self, result, code, *messages):
        self.assertEqual(result.code, code, str(result))
        for message in messages:
            self.assertIn(message, result.err + result.out, str(result))
        return result

    def refuse(self, text, *messages, words=(), code=2):
        (self.folder / "bad.csv").write_text(text)
        self.expect(self.cistern("train", "bad.csv", "--out", "bad_run", *words), code, *messages)
        self.assertFalse((self.folder / "bad_run/model").exists())

    def test_a_table_becomes_a_run_that_predicts_new_rows(self):
        result = self.expect(self.cistern("train", "train.csv", "--out", "run"), 0,
                             "evaluation auc", "stopped by")
        for name in ("model.json", "recipe.json", "report.html", "model", "data/train/file_list.txt",
                     "data/test/file_list.txt"):
            self.assertTrue((self.folder / "run" / name).exists(), name)
        predicted = self.expect(self.cistern("predict", "run", "--input", "new.csv", "--output", "-"), 0)
        scores = [float(row["prediction"]) for row in csv.DictReader(io.StringIO(predicted.out))]
        auc = auc_of(self.labels, scores)
        self.assertGreater(auc, self.best - 0.03, f"of {self.best} possible\n{result}")

    def test_the_parts_share_no_row_and_miss_none(self):
        self.expect(self.cistern("train", "train.csv", "--model", "lr", "--out", "parts"), 0)
        samples = {}
        for part in ("train", "test"):
            seen = self.cistern("data", "inspect", f"parts/data/{part}/file_list.txt", "--json")
            samples[part] = seen.json()["samples"]
        self.assertEqual(sum(samples.values()), 6000)
        self.assertTrue(500 < samples["test"] < 700, samples)
        self.expect(self.cistern("train", "train.csv", "--out", "parts"), 2, "already holds",
                    "--overwrite")

    def test_init_writes_a_model_that_its_next_steps_train(self):
        shown = self.expect(self.cistern("init", "train.csv", "--model", "lr", "--out", "made"), 0,
                            "price", "standardized", "an id: a new value")
        for line in shown.out.splitlines():
            if line.startswith("  cistern "):
                self.expect(self.cistern(*line.split()[1:]), 0)
        self.assertTrue((self.folder / "made/run/model").exists())
        self.expect(self.cistern("init", "train.csv", "--out", "made"), 2, "exists already")
        facts = self.cistern("init", "train.csv", "--out", "again", "--json").json()
        self.assertEqual(facts["rows"], 6000)
        self.assertEqual({c["column"]: c["role"] for c in facts["columns"]},
                         {"row": "ignored", "click": "label", "city": "slot", "user_id": "slot",
                          "price": "dense", "noise": "dense"})

    def test_init_says_that_values_mean_more_in_pairs(self):
        draw = random.Random(4)
        pairs = [(draw.randrange(60), draw.randrange(60)) for _ in range(20000)]
        write(self.folder / "pairs.csv", [
            {"click": int(draw.random() < (0.9 if user % 2 == item % 2 else 0.1)), "user": f"u{user}", "item": f"i{item}"}
            for user, item in pairs])
        self.expect(self.cistern("init", "pairs.csv", "--out", "pairs"), 0, "values mean more in pairs than alone, so")
        self.expect(self.cistern("init", "pairs.csv", "--model", "lr", "--out", "linear"), 0, "a linear model cannot learn")
        alone = self.expect(self.cistern("init", "train.csv", "--out", "alone"), 0)
        self.assertNotIn("in pairs", alone.out + alone.err)

    def test_init_takes_several_files_and_ratings_as_train_does(self):
        rated = [{**row, "click": 1 + 2 * row["click"] + row["user_id"] % 2} for row, _ in rows_of(1200, 3)]
        write(self.folder / "part-1.csv", rated[:500])
        write(self.folder / "part-2.csv", rated[500:])
        flags = ["part-1.csv", "part-2.csv", "--label-threshold", 2, "--min-count", 3, "--model", "lr"]
        shown = self.expect(self.cistern("init", *flags, "--out", "rated"), 0, "above 2 is positive", "1200 rows")
        steps = [line for line in shown.out.splitlines() if "cistern " in line]
        self.assertEqual(len(steps), 4, shown.out)
        for line in steps:
            words = line[line.index("cistern "):].split()[1:]
            if words == ["train", "part-1.csv,part-2.csv", *map(str, flags[2:]), "--out", "rated/run"]:
                words[-1] = "rated/all"
            self.expect(self.cistern(*words), 0)
        self.assertEqual((self.folder / "rated/all/recipe.json").read_text(),
                         (self.folder / "rated/recipe.json").read_text())
        recipe = json.loads((self.folder / "rated/recipe.json").read_text())
        self.assertEqual((recipe["meaning"]["labels"][0]["threshold"], recipe["history"]["min_count"]), (2, 3))
        self.expect(self.cistern("init", "part-1.csv", "clicks.json", "--out", "other"), 2, "one model file is expected")
        self.expect(self.cistern("init", "part-1.csv", "--label-threshold", "much", "--out", "other"), 2,
                    "--label-threshold 'much' is not a number")

    def test_test_data_is_encoded_as_the_training_data(self):
        self.expect(self.cistern("train", "train.csv", "--test", "labelled.csv", "--model", "fm",
                                 "--out", "tested"), 0, "1500 of labelled.csv")
        recipes = {(self.folder / "tested" / name).read_text()
                   for name in ("recipe.json", "data/train/recipe.json", "data/test/recipe.json")}
        self.assertEqual(len(recipes), 1)

    def test_bad_tables_are_refused(self):
        rows = "".join(f"{i % 2},{i % 3},{i % 2}\n" for i in range(200))
        self.refuse("a,b,c\n" + rows, "which column is the label", "a, c", "--label COLUMN")
        self.refuse("a,b,c\n" + rows, "there is no column 'd'", words=("--label", "d"))
        self.refuse("label\n" + "1\n0\n" * 100, "one field only")
        self.refuse("", "empty", code=4)
        self.refuse("label,a\n" + "1,u\n" * 200, "'1' in every row")
        self.refuse("label,a,a\n" + "1,u,v\n0,v,u\n" * 200, "'a'", code=4)
        self.refuse("label,a\n" + "1,u\n0,v\n" * 10, "too few")
        self.refuse("label,a\n" + "1,u\n0,v\n" * 100 + "1\n", "bad.csv: line 202", code=4)
        self.expect(self.cistern("train", "none.csv", "--out", "bad_run"), 2, "none.csv")

    def test_a_line_of_two_gigabytes_is_refused(self):
        with open(self.folder / "long.csv", "wb") as file:
            file.write(b"label,a\n1,")
            file.seek(2 * 2**30)  # a hole: no bytes on the disk
            file.write(b"x\n")
        result = self.cistern("train", "long.csv", "--out", "bad_run")
        self.expect(result, 4, "long.csv: line 2", "16 MiB")

    def test_flags_for_tables_are_refused_with_a_model_file(self):
        (self.folder / "model.json").write_text("{}")
        self.expect(self.cistern("train", "model.json", "--out", "bad_run", "--label", "y"), 2,
                    "--label is for a table")
        self.expect(self.cistern("train", "train.csv", "--out", "bad_run", "--resume"), 2,
                    "not a run to resume")


if __name__ == "__main__":
    unittest.main()
