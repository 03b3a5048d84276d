"""The data recipe travels with data, run and served model: text is encoded as the training data was, or refused.

Every way to predict rows of text gives the bits of the converted data set.
"""

import ctypes
import csv
import io
import json
import math
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

from programs import BIN, Servers, finish, start
from serve_test import Serve, grpc_client
from serving_library import Model

COLUMNS = ["id", "label", "age", "income", "city", "tags"]
READ = ["age", "income", "city", "tags"]  # by the recipe, in the order of the training file
FLAGS = ["--dense", "age,income", "--dense-transform", "log1p", "--ignore", "id", "--multi", "tags",
         "--min-count", 3, "--missing", "key"]


def people(count, seed):
    draw = random.Random(seed)
    rows = []
    for i in range(count):
        age, income = int(draw.lognormvariate(3, 1)), int(draw.lognormvariate(6, 1.5))
        city = f"c{int(draw.paretovariate(1))}"
        logit = 1.2 * (math.log1p(age) - 3) - 0.8 * (math.log1p(income) - 6)
        logit += 0.6 if city in ("c1", "c3") else -0.4
        tags = "|".join(f"t{draw.randrange(6)}" for _ in range(draw.randrange(3)))
        rows.append([i, int(draw.random() < 1 / (1 + math.exp(-logit))), age, income, city, tags])
    return rows


def model(source):
    return {
        "solver": {"lr_policy": "fixed", "num_epochs": 4, "batchsize": 200, "batchsize_eval": 300,
                   "display": 20, "eval_metrics": ["AUC"], "input_key_type": "I64", "seed": 1},
        "optimizer": {"type": "Adam", "update_type": "Local",
                      "adam_hparam": {"learning_rate": 0.02}},
        "layers": [
            {"name": "data", "type": "Data", "format": "Norm", "source": source, "check": "Sum",
             "label": {"top": "label", "label_dim": 1},
             "dense": {"top": "dense", "dense_dim": 2},
             "sparse": [{"top": "data1", "type": "DistributedSlot",
                         "max_feature_num_per_sample": 8, "slot_num": 2}]},
            {"name": "deep", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
             "top": "deep",
             "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": 0}},
            {"name": "flat", "type": "Reshape", "bottom": "deep", "top": "flat", "leading_dim": 8},
            {"name": "all", "type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "all", "top": "fc1",
             "fc_param": {"num_output": 8}},
            {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
            {"name": "fc2", "type": "InnerProduct", "bottom": "relu1", "top": "fc2",
             "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"],
             "top": "loss"},
        ],
    }


def auc_of(labels, scores):
    """By ranks, ties shared."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    ranks, i = [0.0] * len(scores), 0
    while i < len(order):
        j = i
        while j < len(order) and scores[order[j]] == scores[order[i]]:
            j += 1
        for k in range(i, j):
            ranks[order[k]] = (i + j + 1) / 2
        i = j
    ones = sum(labels)
    return (sum(rank for rank, label in zip(ranks, labels) if label) - ones * (ones + 1) / 2) / (
        ones * (len(labels) - ones))


class Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class RecipeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="cistern_recipe_"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.folder = cls.shared
        cls.rows = people(500, seed=2)
        write(cls.shared / "train.csv", people(3000, seed=1))
        write(cls.shared / "test.csv", cls.rows)
        (cls.shared / "model.json").write_text(json.dumps(model("train/file_list.txt")))
        for words in (["data", "convert", "--input", "train.csv", "--out", "train", *FLAGS],
                      ["data", "convert", "--input", "test.csv", "--out", "test", "--recipe", "train"],
                      ["train", "model.json", "--out", "run", "--set", "solver.num_epochs=5"],
                      ["predict", "run", "--data", "test/file_list.txt", "--output", "test.tsv"],
                      ["export", "serving", "run", "--out", "serving"]):
            result = finish(start("cistern", *words, cwd=cls.shared))
            assert result.code == 0, result
        lines = (cls.shared / "test.tsv").read_text().splitlines()
        cls.expected = [line.split("\t")[1] for line in lines]

    def cistern(self, *words, stdin=None):
        if stdin is None:
            return finish(start("cistern", *words, cwd=self.shared))
        done = subprocess.run([str(BIN / "cistern"), *map(str, words)], input=stdin, text=True,
                              capture_output=True, cwd=self.shared, timeout=100, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    def expect(self, result, code, *messages):
        self.assertEqual(result.code, code, str(result))
        for message in messages:
            self.assertIn(message, result.err, str(result))
        return result

    def predictions(self, *words, stdin=None):
        result = self.expect(self.cistern("predict", *words, "--output", "-", stdin=stdin), 0)
        return list(csv.DictReader(io.StringIO(result.out)))

    def test_the_training_is_good_enough_to_notice_a_mistake(self):
        auc = auc_of([row[1] for row in self.rows], list(map(float, self.expected)))
        self.assertGreater(auc, 0.75)

    def test_text_predicts_as_the_converted_data_set(self):
        for source in ("run", "serving"):
            made = self.predictions(source, "--input", "test.csv", "--keep", "id,city")
            self.assertEqual([row["prediction"] for row in made], self.expected)
            self.assertEqual([row["id"] for row in made], [str(row[0]) for row in self.rows])
            self.assertEqual(list(made[0]), ["id", "city", "prediction"])

    def test_labels_are_not_needed_and_columns_may_be_in_any_order(self):
        order = ["tags", "extra", "income", "city", "age"]
        write(self.shared / "other.csv", [row + ["x"] for row in self.rows], order)
        made = self.predictions("run", "--input", "other.csv")
        self.assertEqual([row["prediction"] for row in made], self.expected)

    def test_names_of_columns_may_have_another_case(self):
        order = ["tags", "city", "income", "age"]
        write(self.shared / "upper.csv", self.rows, order, [name.upper() for name in order])
        made = self.predictions("run", "--input", "upper.csv")
        self.assertEqual([row["prediction"] for row in made], self.expected)

    def test_standard_input_and_output_formats(self):
        text = (self.shared / "test.csv").read_text()
        made = self.predictions("run", "--input", "-", stdin=text)
        self.assertEqual([row["prediction"] for row in made], self.expected)
        self.expect(self.cistern("predict", "run", "--input", "test.csv", "--keep", "label", "--output",
                                 "p.tsv"), 0)
        lines = (self.shared / "p.tsv").read_text().splitlines()
        self.assertEqual(lines[0], "label\tprediction")
        self.assertEqual([line.split("\t")[1] for line in lines[1:]], self.expected)

    def test_wrong_columns_are_refused(self):
        cases = {
            "no age": (["label", "income", "city", "tags"], [], "no column 'age'"),
            "misspelled": (["age", "income", "city", "tags"], ["aeg"], "(did you mean 'aeg'?)"),
        }
        for name, (columns, header, message) in cases.items():
            with self.subTest(name):
                write(self.shared / "bad.csv", self.rows, columns, header + columns[len(header):])
                self.expect(self.cistern("predict", "run", "--input", "bad.csv", "--output", "-"), 2,
                            "bad.csv: line 1", message)
        (self.shared / "bad.csv").write_text("7,1,30,500,c1,t1\n")
        self.expect(self.cistern("predict", "run", "--input", "bad.csv", "--output", "-"), 2,
                    "--columns")
        made = self.predictions("run", "--input", "bad.csv", "--columns", "id,label,age,income,city,tags")
        self.assertEqual(len(made), 1)
        (self.shared / "bad.csv").write_text("age,income,city,tags\n30,500,c1,t1\n30,x,c1,t1\n")
        self.expect(self.cistern("predict", "run", "--input", "bad.csv", "--output", "-"), 4,
                    "bad.csv: line 3: column 'income': 'x' is not a number")
        self.expect(self.cistern("predict", "run", "--input", "test.csv", "--keep", "name", "--output",
                                 "-"), 2, "there is no column 'name'")

    def test_data_without_a_header_needs_the_columns_of_the_training(self):
        plain = [[str(x) for x in row] for row in self.rows]
        text = "".join(",".join(row) + "\n" for row in plain)
        (self.shared / "plain.csv").write_text(text)
        self.expect(self.cistern("data", "convert", "--input", "plain.csv", "--columns",
                                 ",".join(COLUMNS), "--out", "plain", *FLAGS), 0)
        self.assertFalse(json.loads((self.shared / "plain/recipe.json").read_text())["layout"]["header"])
        again = ["data", "convert", "--recipe", "plain", "--overwrite", "--out", "again", "--input"]
        self.expect(self.cistern(*again, "plain.csv"), 0)
        self.expect(self.cistern(*again, "test.csv"), 0)  # its first line is a header
        (self.shared / "short.csv").write_text("30,500,c1\n")
        self.expect(self.cistern(*again, "short.csv"), 2, "short.csv: line 1: has 3 fields",
                    "6 columns")

    def test_silent_mistakes_are_refused(self):
        """Each of these scored wrongly with exit code 0 when data carried no recipe."""
        swapped = ["id", "label", "income", "age", "city", "tags"]
        lines = (self.shared / "test.csv").read_text().splitlines()
        (self.shared / "swapped.csv").write_text("\n".join([",".join(swapped), *lines[1:]]) + "\n")
        mistakes = {
            "transform": ("test.csv", [w for w in FLAGS if w not in ("--dense-transform", "log1p")],
                          "dense[0] (age).transform is none, not log1p"),
            "order": ("test.csv", ["--dense", "income,age", *FLAGS[2:]],
                      "dense[0].column is income, not age"),
            "vocabulary": ("test.csv", FLAGS, "vocabulary.xxh3"),
            "separator": ("test.csv", [w for w in FLAGS if w not in ("--multi", "tags")],
                          "slots[1] (tags).separator"),
            "keys": ("test.csv", [*FLAGS, "--key-bits", 32], "key_bits is 32, not 64"),
            "missing": ("test.csv", [w for w in FLAGS if w not in ("--missing", "key")],
                        "missing is none, not key"),
            "label rule": ("test.csv", [*FLAGS, "--label-threshold", 0],
                           "labels[0] (label).threshold is 0.0, not set"),
        }
        for name, (file, flags, message) in mistakes.items():
            with self.subTest(name):
                self.expect(self.cistern("data", "convert", "--input", file, "--out", "wrong",
                                         "--overwrite", *flags), 0)
                data = "wrong/file_list.txt"
                for words in (["predict", "run", "--data", data, "--output", "-"],
                              ["eval", "run", "--data", data],
                              ["eval", "model.json", "--model", "run", "--data", data],
                              ["predict", "serving", "--data", data, "--output", "-"]):
                    self.expect(self.cistern(*words), 2, message, "cistern data convert --recipe")
                self.expect(self.cistern("train", "model.json", "--out", "run", "--resume", "--set",
                                         f"layers.data.source={data}"), 2, message)
                self.expect(self.cistern("train", "model.json", "--out", "never", "--set",
                                         f"layers.data.eval_source={data}"), 2, message)
        self.assertFalse((self.shared / "never").exists())
        # By name, a swapped file is no mistake: its columns hold what they say.
        made = self.predictions("run", "--input", "swapped.csv")
        self.assertNotEqual([row["prediction"] for row in made], self.expected)

    def test_the_next_day_continues_a_finished_run(self):
        write(self.shared / "day2.csv", people(1000, seed=3))
        write(self.shared / "day3.csv", people(1000, seed=4), ["income", "tags", "age", "city", "label"])
        shutil.copytree(self.shared / "run", self.shared / "daily")
        more = ["train", "daily", "--resume", "--more"]
        day2 = self.expect(self.cistern(*more, "day2.csv", "--json"), 0, "continuing with more data").json()
        self.assertEqual((day2["samples"], day2["iterations"]), (5 * 1000, 5 * 5))
        again = self.expect(self.cistern(*more, "day2.csv", "--json"), 0).json()
        self.assertEqual(again["resumed_from"], day2["iterations"])  # nothing is trained twice
        self.expect(self.cistern(*more, "day3.csv"), 0)
        logs = sorted(path.name for path in (self.shared / "daily").glob("metrics*"))
        self.assertEqual(logs, ["metrics-1.jsonl", "metrics-2.jsonl", "metrics.jsonl"])
        stored = json.loads((self.shared / "daily/model.json").read_text())
        self.assertEqual(stored["layers"][0]["source"], "daily/more/day3/file_list.txt")
        self.predictions("daily", "--input", "test.csv")
        # The same on one folder of data sets, without text: the same bits.
        shutil.copytree(self.shared / "run", self.shared / "daily2")
        for day in ("day2", "day3"):
            self.expect(self.cistern("data", "convert", "--recipe", f"daily/more/{day}", "--input", f"{day}.csv",
                                     "--out", day), 0)
            self.expect(self.cistern("train", "daily2", "--resume", "--more",
                                     f"{day}/file_list.txt"), 0)
        self.assertEqual(self.predictions("daily", "--input", "test.csv"),
                         self.predictions("daily2", "--input", "test.csv"))

    def test_more_data_needs_a_finished_run_of_the_same_recipe(self):
        self.expect(self.cistern("train", "model.json", "--out", "new", "--more", "day2.csv"), 2,
                    "--more continues a finished run")
        shutil.copytree(self.shared / "run", self.shared / "other-run")
        self.expect(self.cistern("train", "other-run", "--resume", "--more", "gone.csv"), 2, "gone.csv")
        self.expect(self.cistern("train", "other-run", "--resume", "--more", "train/file_list.txt",
                                 "--set", "solver.batchsize=50"), 2, "batchsize")
        self.expect(self.cistern("data", "convert", "--input", "test.csv", "--out", "unlike",
                                 "--dense", "age,income", "--ignore", "id"), 0)
        self.expect(self.cistern("train", "other-run", "--resume", "--more", "unlike/file_list.txt"), 2,
                    "dense[0] (age).transform is none, not log1p")

    def test_published_versions_share_recipe_and_vocabulary(self):
        shutil.copytree(self.shared / "run", self.shared / "followed")
        publish = ["publish", "followed", "--follow", "followed", "--out", "published", "--once"]
        self.expect(self.cistern(*publish), 0)
        self.expect(self.cistern("train", "followed", "--resume", "--set", "solver.num_epochs=6"), 0)
        self.expect(self.cistern(*publish), 0)
        head = json.loads((self.shared / "published/HEAD").read_text())["version"]
        version = json.loads((self.shared / f"published/{head}/serving.json").read_text())
        self.assertNotEqual(version["recipe"]["path"].split("/")[0], head)
        self.assertFalse((self.shared / f"published/{head}/vocabulary.txt").exists())
        self.assertEqual(self.predictions("published", "--input", "test.csv"),
                         self.predictions("followed", "--input", "test.csv"))

    def test_a_row_is_found_by_its_text(self):
        with Servers(2, self.shared) as servers:
            self.expect(self.cistern("train", "model.json", "--servers", servers.addresses, "--out",
                                     "fleet-run", "--no-save-model"), 0)
            show = ["table", "show", "deep", "--servers", servers.addresses, "--json"]
            found = self.expect(self.cistern(*show, "city=c1", "--recipe", "train"), 0).json()
            again = self.expect(self.cistern(*show, found["key"]), 0).json()
            self.assertEqual(found["fields"], again["fields"])
            self.expect(self.cistern(*show, "city=c1"), 2, "--recipe")
            fleet = ["predict", "fleet-run", "--servers", servers.addresses, "--output", "-"]
            text = self.expect(self.cistern(*fleet, "--input", "test.csv"), 0)
            data = self.expect(self.cistern(*fleet, "--data", "test/file_list.txt"), 0)
            self.assertEqual(text.out.splitlines()[1:],
                             [line.split("\t")[1] for line in data.out.splitlines()])
            self.expect(self.cistern(*show, "town=c1", "--recipe", "train"), 2, "the slots read city, tags")

    def test_libsvm_lines(self):
        lines = [f"{row[1]} {row[2] % 7}:1 {10 + row[3] % 5}:1\n" for row in self.rows]
        (self.shared / "in.libsvm").write_text("".join(lines))
        self.expect(self.cistern("data", "convert", "--format", "libsvm", "--input", "in.libsvm",
                                 "--out", "svm"), 0)
        content = model("svm/file_list.txt")
        content["layers"][0]["dense"]["dense_dim"] = 0
        content["layers"] = [layer for layer in content["layers"] if layer.get("name") != "all"]
        content["layers"][3]["bottom"] = "flat"
        (self.shared / "svm.json").write_text(json.dumps(content))
        self.expect(self.cistern("train", "svm.json", "--out", "svm-run"), 0)
        made = self.predictions("svm-run", "--input", "in.libsvm", "--keep", "label")
        self.expect(self.cistern("predict", "svm-run", "--data", "svm/file_list.txt", "--output",
                                 "svm.tsv"), 0)
        pairs = [f"{row['label']}\t{row['prediction']}" for row in made]
        self.assertEqual((self.shared / "svm.tsv").read_text().splitlines(), pairs)

    def test_a_recipe_excludes_the_flags_that_it_replaces(self):
        self.expect(self.cistern("data", "convert", "--recipe", "train", "--input", "test.csv", "--out",
                                 "x", "--dense", "age"), 2, "--dense cannot be combined with --recipe")

    def test_a_changed_recipe_is_refused(self):
        shutil.copytree(self.shared / "train", self.shared / "forged")
        path = self.shared / "forged/recipe.json"
        path.write_text(path.read_text().replace("log1p", "none", 1))
        self.expect(self.cistern("data", "convert", "--recipe", "forged", "--input", "test.csv",
                                 "--out", "x"), 4, "it was changed after it was written")
        shutil.copy(self.shared / "train/recipe.json", path)
        vocabulary = self.shared / "forged/vocabulary.txt"
        vocabulary.write_text("\n".join(vocabulary.read_text().splitlines()[:-1]) + "\n")
        self.expect(self.cistern("data", "convert", "--recipe", "forged", "--input", "test.csv",
                                 "--out", "x"), 4, "checksum mismatch")

    def test_a_run_folder_is_a_whole_model(self):
        moved = self.shared / "elsewhere"
        shutil.copytree(self.shared / "run", moved)
        made = self.predictions(moved, "--input", self.shared / "test.csv")
        self.assertEqual([row["prediction"] for row in made], self.expected)
        score = self.expect(self.cistern("eval", "run", "--data", "test/file_list.txt", "--json"), 0)
        # Neither optimizer constants nor the seed change a prediction.
        other = self.cistern("eval", "model.json", "--model", "run", "--data", "test/file_list.txt",
                             "--json", "--set", "optimizer.adam_hparam.beta1=0.5",
                             "--set", "solver.seed=9", "--set", "solver.num_epochs=1")
        self.assertEqual(self.expect(other, 0).json()["auc"], score.json()["auc"])
        self.expect(self.cistern("eval", "run", "--data", "test/file_list.txt", "--set",
                                 "layers.deep.sparse_embedding_hparam.embedding_vec_size=8",
                                 "--set", "layers.flat.leading_dim=16"), 2, "embedding_vec_size is 8, not 4")

    def test_a_plan_counts_the_keys_of_the_training_data(self):
        result = self.expect(self.cistern("plan", "run", "--json"), 0)
        table = json.loads(result.out)["tables"][0]
        trained = [json.loads(line) for line in (self.shared / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(table["rows"], trained[-1]["rows"])
        self.assertIn("each distinct key in the 3000 samples", table["assumption"])

    def test_another_graph_is_refused(self):
        other = json.loads((self.shared / "model.json").read_text())
        other["layers"][5]["type"] = "ELU"
        other["layers"][5]["elu_param"] = {"alpha": 1.0}
        (self.shared / "other.json").write_text(json.dumps(other))
        for words in (["eval", "other.json", "--model", "run", "--data", "test/file_list.txt"],
                      ["predict", "other.json", "--model", "run/model", "--input", "test.csv",
                       "--output", "-"]):
            self.expect(self.cistern(*words), 2, "its graph differs from the trained one",
                        "layer 'relu1': type is ELU, not ReLU")

    def test_data_without_a_recipe_works_as_before(self):
        for name in ("train", "test"):
            shutil.copytree(self.shared / name, self.shared / f"bare-{name}")
            (self.shared / f"bare-{name}/recipe.json").unlink()
        self.expect(self.cistern("train", "model.json", "--out", "bare-run", "--set",
                                 "layers.data.source=bare-train/file_list.txt"), 0)
        self.assertFalse((self.shared / "bare-run/recipe.json").exists())
        for data in ("test", "bare-test"):
            self.expect(self.cistern("eval", "bare-run", "--data", f"{data}/file_list.txt"), 0)
        self.expect(self.cistern("eval", "run", "--data", "bare-test/file_list.txt"), 0)
        self.expect(self.cistern("predict", "bare-run", "--input", "test.csv", "--output", "-"), 2,
                    "holds no recipe", "--recipe")
        made = self.predictions("bare-run", "--input", "test.csv", "--recipe", "train")
        self.assertEqual(len(made), len(self.expected))

    def test_served_text_has_the_same_bits(self):
        fields = [[str(row[COLUMNS.index(name)]) for name in READ] for row in self.rows]
        lines = [",".join(row) for row in fields]
        expected = [struct.unpack("f", struct.pack("f", float(x)))[0] for x in self.expected]
        self.check_library(lines, expected)
        with Serve(self.shared / "serving") as server:
            path = f"/v2/models/{server.ready['model']}"
            config = json.loads(server.get(path + "/config")[1])
            self.assertEqual(config["parameters"]["text_columns"]["string_value"], ",".join(READ))
            for data, shape in ((lines, [500]), (fields, [500, 4])):
                self.assertEqual(self.ask_http(server, path, data, shape), expected)
            for data, message in ((["1,2"], "row 0: it has 2 fields; send 4"),
                                  (["1,2,c,t\n", "x,2,c,t"], "row 1: column 'age': 'x' is not a number"),
                                  (["1,2,\"c,t"], "opens a quote")):
                self.assertIn(message, self.ask_http(server, path, data, [len(data)]))
            if grpc_client is not None:
                self.check_grpc(server, lines, fields, expected)

    def test_a_cross_is_the_same_in_every_way_to_predict(self):
        """The label is 1 if x equals y: only their cross tells."""
        draw = random.Random(3)
        rows = [(draw.randrange(4), draw.randrange(4)) for _ in range(3000)]
        text = "".join(f"{int(x == y)},x{x},y{y}\n" for x, y in rows)
        (self.shared / "cross.csv").write_text("label,x,y\n" + text)
        self.expect(self.cistern("train", "cross.csv", "--cross", "x,y", "--sparse", "x,y", "--model", "lr", "--set",
                                 "solver.num_epochs=3", "--set", "optimizer.adam_hparam.learning_rate=0.1", "--out",
                                 "crossed"), 0)
        recipe = json.loads((self.shared / "crossed" / "recipe.json").read_text())
        self.assertEqual([slot["column"] for slot in recipe["meaning"]["slots"]], ["x", "y", "x_x_y"])
        fields = [[f"x{x}", f"y{y}"] for x in range(5) for y in range(5)]  # 4 is new
        lines = [",".join(row) for row in fields]
        (self.shared / "pairs.csv").write_text("y,x\n" + "".join(f"{y},{x}\n" for x, y in fields))
        made = [row["prediction"] for row in self.predictions("crossed", "--input", "pairs.csv")]
        known = [(float(p), x[1] == y[1]) for (x, y), p in zip(fields, made) if "4" not in x + y]
        self.assertGreater(min(p for p, equal in known if equal), max(p for p, equal in known if not equal))
        (self.shared / "labelled.csv").write_text("label,x,y\n" + "".join(f"1,{line}\n" for line in lines))
        self.expect(self.cistern("data", "convert", "--input", "labelled.csv", "--recipe", "crossed", "--out",
                                 "pairs"), 0)
        self.expect(self.cistern("predict", "crossed", "--data", "pairs/file_list.txt", "--output", "pairs.tsv"), 0)
        converted = [line.split("\t")[1] for line in (self.shared / "pairs.tsv").read_text().splitlines()]
        self.assertEqual(converted, made)
        self.expect(self.cistern("export", "serving", "crossed", "--out", "serving-crossed"), 0)
        expected = [struct.unpack("f", struct.pack("f", float(x)))[0] for x in made]
        with Serve(self.shared / "serving-crossed") as server:
            path = f"/v2/models/{server.ready['model']}"
            self.assertEqual(self.ask_http(server, path, lines, [len(lines)]), expected)

    def check_library(self, lines, expected):
        with Model(self.shared / "serving") as opened:
            self.assertEqual(opened.describe()["text"], {"columns": READ, "delimiter": ","})
            rows = (Text * len(lines))(*[Text(line.encode(), len(line)) for line in lines])
            out = (ctypes.c_float * len(lines))()
            opened.library.cistern_predict_text.argtypes = [
                ctypes.c_void_p, ctypes.POINTER(Text), ctypes.c_size_t,
                ctypes.POINTER(ctypes.c_float), ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64),
                ctypes.c_char_p, ctypes.c_size_t]
            code = opened.library.cistern_predict_text(opened.model, rows, len(lines), out, len(lines),
                                                       None, opened.error, 512)
            self.assertEqual((code, list(out)), (0, expected))
            rows[0] = Text(b"1,2", 3)
            code = opened.library.cistern_predict_text(opened.model, rows, 1, out, 1, None,
                                                       opened.error, 512)
            self.assertEqual(code, -1)
            self.assertIn("row 0: it has 2 fields", opened.error.value.decode())

    def ask_http(self, server, path, data, shape):
        body = json.dumps({"inputs": [{"name": "text", "datatype": "BYTES", "shape": shape,
                                       "data": data}], "outputs": [{"name": "probability"}]})
        server.connection.request("POST", path + "/infer", body)
        answer = json.loads(server.connection.getresponse().read())
        if "error" in answer:
            return answer["error"]
        return [struct.unpack("f", struct.pack("f", x))[0] for x in answer["outputs"][0]["data"]]

    def check_grpc(self, server, lines, fields, expected):
        import numpy
        with grpc_client.InferenceServerClient(server.ready["grpc"]) as client:
            for data in (lines, fields):
                array = numpy.array(data, dtype=object)
                text = grpc_client.InferInput("text", array.shape, "BYTES")
                text.set_data_from_numpy(array)
                answer = client.infer(server.ready["model"], [text])
                got = answer.as_numpy("probability").reshape(-1).tolist()
                self.assertEqual(got, expected)


class Outcome:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out[:2000]}\n--- stderr\n{self.err}"


def write(path, rows, columns=None, header=None):
    columns = columns or COLUMNS
    known = COLUMNS + ["extra"]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(header or columns) + "\n")
        for row in rows:
            file.write(",".join(str(row[known.index(name)]) for name in columns) + "\n")


if __name__ == "__main__":
    unittest.main()
