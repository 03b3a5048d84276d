"""A table today, another one tomorrow: new values, labels and missing values in other words, evaluation on the new days."""

import csv
import io
import json
import pathlib
import random
import re
import shlex
import shutil
import tempfile
import unittest

from programs import finish, start
from table_test import auc_of

OLD, NEW = [f"a{i}" for i in range(30)], [f"b{i}" for i in range(30)]


def day(rows, seed, items, words=("0", "1"), missing="", price=True):
    """Clicks depend on the item alone: 9 of 10 for even ones, 1 of 10 for odd ones."""
    draw, made = random.Random(seed), []
    for _ in range(rows):
        item = draw.choice(items)
        click = draw.random() < (0.9 if int(item[1:]) % 2 == 0 else 0.1)
        cost = missing if draw.random() < 0.1 else f"{draw.uniform(1, 9):.2f}"
        made.append({"click": words[click], "item": item, "user": f"u{draw.randrange(50)}",
                     **({"price": cost} if price else {})})
    return made


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


class DailyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_daily_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        write(cls.folder / "day1.csv", day(3000, 1, OLD, words=("no", "yes")))
        write(cls.folder / "day2.csv", day(5000, 2, OLD + NEW, words=("No", "YES")))
        write(cls.folder / "narrow.csv", day(400, 10, OLD, price=False))
        write(cls.folder / "day3.csv", day(2000, 3, NEW, words=("0", "1")))
        result = finish(start("cistern", "train", "day1.csv", "--out", "first", cwd=cls.folder))
        assert result.code == 0, result

    def cistern(self, *words):
        return finish(start("cistern", *words, cwd=self.folder))

    def expect(self, result, code, *messages):
        self.assertEqual(result.code, code, str(result))
        for message in messages:
            self.assertIn(message, result.err + result.out, str(result))
        return result

    def copy(self, name):
        shutil.copytree(self.folder / "first", self.folder / name)
        # The run's model file names its data by the path of the first run.
        return name

    def scores(self, run, file):
        predicted = self.expect(self.cistern("predict", run, "--input", file, "--output", "-"), 0)
        return [row["prediction"] for row in csv.DictReader(io.StringIO(predicted.out))]

    def auc(self, run, file):
        rows = list(csv.DictReader((self.folder / file).read_text(encoding="utf-8").splitlines()))
        return auc_of([int(row["click"]) for row in rows], list(map(float, self.scores(run, file))))

    def test_new_items_are_learned_and_judged_on_the_new_days(self):
        run = self.copy("learns")
        more = ["train", run, "--resume", "--more", "day2.csv"]
        self.expect(self.cistern(*more), 0, "item 30", "more held out")
        self.assertGreater(self.auc(run, "day3.csv"), 0.87)  # 0.9 is what can be known
        recipe = json.loads((self.folder / run / "recipe.json").read_text())
        before = json.loads((self.folder / "first/recipe.json").read_text())
        self.assertEqual(recipe["history"]["extends"], [before["xxh3"]])
        model = json.loads((self.folder / run / "model.json").read_text())
        self.assertEqual(model["layers"][0]["eval_source"], f"{run}/more/day2.test/file_list.txt")
        final = json.loads((self.folder / run / "metrics.jsonl").read_text().splitlines()[-1])
        self.assertGreater(final["auc"], 0.85)
        # The same command again trains nothing, and the recipe stays.
        again = self.expect(self.cistern(*more, "--json"), 0).json()
        self.assertEqual(again["resumed_from"], again["iterations"])
        self.assertEqual(json.loads((self.folder / run / "recipe.json").read_text()), recipe)
        # Serving has the recipe that the model was trained with.
        self.expect(self.cistern("export", "serving", run, "--out", "serving"), 0)
        self.assertEqual(self.scores("serving", "day3.csv"), self.scores(run, "day3.csv"))
        # Data of the first recipe no longer fits the model.
        self.expect(self.cistern("eval", run, "--data", "first/data/test/file_list.txt"), 2, "vocabulary.xxh3")

    def test_converted_data_can_bring_its_values(self):
        run = self.copy("converted")
        convert = ["data", "convert", "--recipe", run, "--input", "day2.csv", "--out"]
        self.expect(self.cistern(*convert, "plain"), 0)
        self.expect(self.cistern(*convert, "extended", "--extend"), 0, "30 values of 'item' are new")
        self.expect(self.cistern("train", run, "--resume", "--more", "extended/file_list.txt"), 0,
                    "evaluation stays on")
        self.assertGreater(self.auc(run, "day3.csv"), 0.87)
        other = self.copy("other")
        self.expect(self.cistern("train", other, "--resume", "--more", "plain/file_list.txt"), 0)
        self.expect(self.cistern("train", run, "--resume", "--more", "plain/file_list.txt"), 2, "vocabulary.xxh3")

    def test_values_that_are_rare_on_each_day_add_up(self):
        run = self.copy("rare")
        for number in (4, 5):
            rows = day(400, number, OLD)
            rows[0]["item"] = "trickle"
            write(self.folder / f"day{number}.csv", rows)
        more = ["train", run, "--resume", "--more"]
        first = self.expect(self.cistern(*more, "day4.csv"), 0)
        self.assertNotIn("item 1", first.err)
        self.expect(self.cistern(*more, "day5.csv"), 0, "item 1")

    def test_labels_that_training_never_saw_stop_the_run(self):
        run = self.copy("labels")
        write(self.folder / "maybe.csv", day(500, 6, OLD, words=("no", "maybe")))
        message = "column 'click': the label 'maybe' is neither positive ('yes') nor negative ('no')"
        self.expect(self.cistern("train", run, "--resume", "--more", "maybe.csv"), 4, "maybe.csv: line ", message)
        self.expect(self.cistern("predict", run, "--input", "maybe.csv", "--output", "-"), 4, message)
        self.expect(self.cistern("train", "day1.csv", "--valid", "maybe.csv", "--out", "never"), 4, message)
        write(self.folder / "clicks.csv", [row for row in day(800, 7, OLD) if row["click"] == "1"])
        self.expect(self.cistern("train", run, "--resume", "--more", "clicks.csv"), 2, "labels are positive",
                    "ruin the model")
        nearly = day(4000, 8, OLD)
        one = next(row for row in nearly if row["click"] == "yes" or row["click"] == "1")
        write(self.folder / "nearly.csv", [row for row in nearly if row["click"] != one["click"]] + [one])
        self.expect(self.cistern("train", run, "--resume", "--more", "nearly.csv"), 2, "of the labels are positive, and",
                    "ruin the model")
        self.expect(self.cistern("train", "day1.csv", "--valid", "clicks.csv", "--out", "never"), 2,
                    "clicks.csv: the evaluation part", "check the column of the label")

    def test_missing_values_have_many_names(self):
        expected = None
        for missing in ("", "NULL", "nan", "\\N", " ", "inf"):
            write(self.folder / "missing.csv", day(300, 8, OLD, missing=missing))
            scores = self.scores("first", "missing.csv")
            expected = expected or scores
            self.assertEqual(scores, expected, missing)

    def test_values_in_another_spelling_are_told(self):
        """Two rows in five: the others are known."""
        said = "the model does not know"
        for number, write_item in enumerate((str.upper, "'{}'".format, "{}\u00a0".format)):
            rows = [{**row, "item": write_item(row["item"]) if i % 5 < 2 else row["item"]}
                    for i, row in enumerate(day(500, 12, OLD))]
            write(self.folder / f"spelled{number}.csv", rows)
            file = f"spelled{number}.csv"
            told = self.expect(self.cistern("predict", "first", "--input", file, "--output", "p.csv"), 0, said, "but knows 'a")
            self.assertIn("40 % of its values", told.err)
            self.expect(self.cistern("eval", "first", "--data", file), 0, said)
        run = self.copy("spelled")
        self.expect(self.cistern("train", run, "--resume", "--more", "spelled0.csv"), 0, said, "but knows 'a")
        told = self.expect(self.cistern("predict", "first", "--input", "day2.csv", "--output", "p.csv"), 0)
        self.assertNotIn(said, told.err)

    def test_other_columns_are_told(self):
        run = self.copy("columns")
        rows = [{**row, "color": "red"} for row in day(400, 9, OLD)]
        write(self.folder / "wide.csv", rows)
        self.expect(self.cistern("train", run, "--resume", "--more", "wide.csv"), 0, "color",
                    "cistern train 'day1.csv' 'wide.csv' --add-column 'color' --out NEW")
        self.expect(self.cistern("train", run, "--resume", "--more", "narrow.csv"), 2, "no column 'price'")
        self.expect(self.cistern("train", run, "--more", "wide.csv"), 2, "--resume")

    def test_a_new_column_is_learned_as_the_note_says(self):
        """Clicks of the later days depend on the color, too."""
        draw = random.Random(13)
        def colored(rows, seed):
            made = []
            for row in day(rows, seed, OLD):
                red = draw.random() < 0.5
                made.append({**row, "click": "1" if red and draw.random() < 0.8 else row["click"], "color": "red" if red else "blue"})
            return made
        write(self.folder / "colored.csv", colored(2000, 14))
        write(self.folder / "later.csv", colored(2000, 15))
        run = self.copy("colors")
        said = self.expect(self.cistern("train", run, "--resume", "--more", "colored.csv"), 0)
        without = self.auc(run, "later.csv")
        command = shlex.split(re.search(r"cistern (train .*) NEW", said.err).group(1))
        self.expect(self.cistern(*command, "all"), 0)
        self.assertGreater(self.auc("all", "later.csv"), without + 0.04)
        refused = self.expect(self.cistern("train", run, "--resume", "--more", "colored.csv", "--add-column", "color"), 2)
        self.assertIn("column 'color' is new to", refused.err)
        # A day without a column that the run has.
        self.expect(self.cistern("train", run, "--resume", "--more", "narrow.csv", "--add-column", "price"), 0)
        self.expect(self.cistern("predict", run, "--input", "narrow.csv", "--output", "p.csv"), 2, "no column 'price'")

    def test_a_second_file_is_scored_once_at_the_end(self):
        write(self.folder / "test.csv", day(600, 11, OLD))
        result = self.expect(self.cistern("train", "day1.csv", "--valid", "day2.csv", "--test", "test.csv", "--out",
                                          "scored", "--json"), 0)
        test = result.json()["test"]
        self.assertEqual((test["file"], test["samples"]), ("test.csv", 600))
        self.assertAlmostEqual(test["auc"], self.auc("scored", "test.csv"), places=6)
        self.assertIn("600 samples of test.csv", (self.folder / "scored/report.html").read_text())
        self.expect(self.cistern("train", "day1.csv", "--test", "test.csv", "--out", "alone"), 0,
                    "--test test.csv chooses the epoch")

    def test_several_files_are_one_table(self):
        rows = day(1200, 12, OLD)
        write(self.folder / "part-1.csv", rows[:600])
        write(self.folder / "part-2.csv", rows[600:])
        seen = []
        for number, words in enumerate((["part-1.csv", "part-2.csv"], ["part-1.csv,part-2.csv"], ["part-*.csv"])):
            self.expect(self.cistern("train", *words, "--model", "lr", "--out", f"parts{number}"), 0)
            seen.append(self.scores(f"parts{number}", "part-1.csv"))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        self.expect(self.cistern("train", "part-1.csv", "model.json", "--out", "never"), 2, "model.json")

    def test_a_header_alone_is_an_empty_result(self):
        (self.folder / "empty.csv").write_text("click,item,user,price\n")
        result = self.expect(self.cistern("predict", "first", "--input", "empty.csv", "--output", "-"), 0, "no row")
        self.assertEqual(result.out.splitlines()[0], "prediction")


if __name__ == "__main__":
    unittest.main()
