"""Several labels with a loss each: trained, evaluated, predicted, exported and served; beside each label on its own."""

import csv
import json
import math
import pathlib
import random
import shutil
import tempfile
import unittest

from programs import finish, start


def auc_of(pairs):
    ones, zeros = [s for y, s in pairs if y], [s for y, s in pairs if not y]
    return sum((a > b) + 0.5 * (a == b) for a in ones for b in zeros) / (len(ones) * len(zeros))


def model(labels):
    """A head for each label, on shared rows. labels: name -> loss_weight."""
    heads = []
    for name, weight in labels.items():
        heads += [{"name": f"{name}_h", "type": "InnerProduct", "bottom": "r", "top": f"{name}_h", "fc_param": {"num_output": 8}},
                  {"name": f"{name}_a", "type": "ReLU", "bottom": f"{name}_h", "top": f"{name}_a"},
                  {"name": f"{name}_z", "type": "InnerProduct", "bottom": f"{name}_a", "top": f"{name}_z",
                   "fc_param": {"num_output": 1}},
                  {"name": f"{name}_loss", "type": "BinaryCrossEntropyLoss", "bottom": [f"{name}_z", name], "top": f"{name}_loss",
                   "loss_weight": weight}]
    return {
        "solver": {"batchsize": 200, "num_epochs": 4, "input_key_type": "I64", "display": 0, "eval_interval": 50, "seed": 5},
        "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.01}},
        "layers": [{"name": "data", "type": "Data", "source": "data/file_list.txt", "eval_source": "held/file_list.txt",
                    "check": "Sum", "label": {"top": ["click", "buy"], "label_dim": [1, 1]},
                    "sparse": [{"top": "s", "slot_num": 2, "max_feature_num_per_sample": 2}]},
                   {"name": "e", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "s", "top": "e",
                    "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
                   {"name": "r", "type": "Reshape", "bottom": "e", "top": "r", "leading_dim": 8}, *heads]}


class Labels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_labels_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.test = cls.write("test.csv", 2000, 2)
        cls.write("train.csv", 12000, 1)
        flags = ["--label", "click,buy", "--sparse", "user,item"]
        cls.run_of("data", "convert", "--input", "train.csv", "--out", "data", *flags)
        cls.run_of("data", "convert", "--input", "test.csv", "--recipe", "data", "--out", "held")
        (cls.folder / "both.json").write_text(json.dumps(model({"click": 0.3, "buy": 0.7})))
        cls.trained = cls.run_of("train", "both.json", "--out", "run", "--json").json()

    @classmethod
    def run_of(cls, *words, code=0):
        result = finish(start("cistern", *words, cwd=cls.folder))
        assert result.code == code, str(result)
        return result

    @classmethod
    def write(cls, name, count, seed):
        """A click depends on the user, a purchase on the item; of every tenth row it is not known."""
        draw, rows = random.Random(seed), []
        for _ in range(count):
            user, item = draw.randrange(40), draw.randrange(40)
            click = int(draw.random() < 1 / (1 + math.exp(0.5 - 2 * math.sin(user))))
            buy = int(draw.random() < 1 / (1 + math.exp(1 - 2 * math.cos(item))))
            rows.append({"click": click, "buy": "" if draw.random() < 0.1 else buy, "user": f"u{user}", "item": f"i{item}"})
        with open(cls.folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return rows

    def predictions(self, *words):
        self.run_of("predict", *words, "--input", "test.csv", "--output", "p.csv")
        with open(self.folder / "p.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_each_label_has_metrics_and_predictions_by_its_name(self):
        metrics = self.run_of("eval", "run", "--json").json()
        predictions = self.predictions("run")
        for name in ("click", "buy"):
            pairs = [(int(row[name]), float(p[f"prediction_{name}"])) for row, p in zip(self.test, predictions) if row[name] != ""]
            self.assertAlmostEqual(metrics[f"auc[{name}]"], auc_of(pairs), 6)
            loss = -sum(math.log(p if y else 1 - p) for y, p in pairs) / len(pairs)
            self.assertAlmostEqual(metrics[f"logloss[{name}]"], loss, 5)
            self.assertGreater(metrics[f"auc[{name}]"], 0.7)
        self.run_of("export", "serving", "run", "--out", "served")
        self.assertEqual([row["prediction_buy"] for row in self.predictions("served")],
                         [row["prediction_buy"] for row in predictions])

    def test_a_label_of_weight_0_does_not_move_the_others(self):
        """A head whose loss counts nothing leaves the other as if it were alone: loss and gradients are those of one label."""
        (self.folder / "one.json").write_text(json.dumps(model({"click": 1, "buy": 0})))
        self.run_of("train", "one.json", "--out", "one")
        alone = model({"click": 1})
        alone["layers"][0]["label"] = {"top": "click", "label_dim": 1}
        for place, name in (("source", "data"), ("eval_source", "held")):
            alone["layers"][0][place] = f"{name}1/file_list.txt"
        del alone["layers"][-1]["loss_weight"]
        for table, name in (("train.csv", "data1"), ("test.csv", "held1")):
            self.run_of("data", "convert", "--input", table, "--out", name, "--label", "click", "--sparse", "user,item",
                        "--ignore", "buy")
        (self.folder / "alone.json").write_text(json.dumps(alone))
        self.run_of("train", "alone.json", "--out", "alone")
        metrics = [self.run_of("eval", run, "--json").json() for run in ("one", "alone")]
        self.assertAlmostEqual(metrics[0]["logloss[click]"], metrics[1]["logloss"], 4)

    def test_what_is_wrong_is_named(self):
        broken = model({"click": 1, "buy": 1})
        broken["layers"][-1]["bottom"][1] = "click"
        (self.folder / "broken.json").write_text(json.dumps(broken))
        self.assertIn("label 'click' has a loss already", self.run_of("train", "broken.json", "--out", "x", code=2).err)


class Templates(Labels):
    """Models of several labels from a table. A purchase needs a click here."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_labels_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.test = cls.write("test.csv", 2000, 2)
        cls.write("train.csv", 6000, 1)

    @classmethod
    def write(cls, name, count, seed):
        rows = super().write(name, count, seed)
        for row in rows:
            row["buy"] = row["buy"] and row["click"] * row["buy"]
        with open(cls.folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return rows

    # Those of the other class are about its model.
    test_a_label_of_weight_0_does_not_move_the_others = None
    test_each_label_has_metrics_and_predictions_by_its_name = None

    def test_each_kind_learns_and_serves_every_label(self):
        for kind, words in (("mmoe", []), ("ple", ["--model", "ple"]), ("esmm", ["--model", "esmm"])):
            with self.subTest(kind):
                out = self.run_of("train", "train.csv", "--label", "click,buy", *words, "--valid", "test.csv", "--set",
                                  "solver.num_epochs=4", "--out", kind)
                self.assertIn(f"model {kind}", out.err + out.out)
                metrics = self.run_of("eval", kind, "--json").json()
                predictions = self.predictions(kind)
                for name in ("click", "buy"):
                    pairs = [(int(row[name]), float(p[f"prediction_{name}"]))
                             for row, p in zip(self.test, predictions) if row[name] != ""]
                    self.assertAlmostEqual(metrics[f"auc[{name}]"], auc_of(pairs), 6)
                    self.assertGreater(metrics[f"auc[{name}]"], 0.7)
                self.run_of("export", "serving", kind, "--out", f"{kind}_served")
                self.assertEqual(self.predictions(f"{kind}_served"), predictions)
                if kind == "esmm":
                    self.assertTrue(all(float(p["prediction_buy"]) <= float(p["prediction_click"]) for p in predictions))

    def test_what_is_wrong_is_named(self):
        for words, message in ((["--label", "click", "--model", "mmoe"], "mmoe predicts several labels, and there is one"),
                               (["--label", "click,buy", "--model", "dcn"], "dcn predicts one label, and there are 2"),
                               (["--label", "click,user"], "one of several labels is 1 or 0"),
                               (["--label", "buy,click", "--model", "esmm"], "esmm predicts labels each of which needs"),
                               (["--label", "click,buy", "--positive", "1"], "leave out --positive"),
                               (["--label", "click,buy", "--negative-rate", "0.5"], "a row is negative by one label")):
            self.assertIn(message, self.run_of("init", "train.csv", *words, "--out", "wrong", code=2).err)


if __name__ == "__main__":
    unittest.main()
