"""Weights of keys: in text, JSON and Parquet, with one score in every place that predicts."""

import csv
import json
import math
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import unittest

from programs import Samples, Servers, finish, has_parquet, start, wrapped
from serve_process import Serve
from serving_library import Model, ServeError
from workers import WorkersTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "build/pyarrow"))
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

WEIGHTS = [-1, 0.25, 0.5, 1, 2, 0]


def rows_of(count, seed):
    """A click is likely if the weighted tags with odd numbers exceed the others; counts of tags tell nothing."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        tags = [(f"t{draw.randrange(12)}", draw.choice(WEIGHTS)) for _ in range(draw.randrange(5))]
        score = sum(w * (1 if int(t[1:]) % 2 else -1) for t, w in tags)
        rows.append({"click": int(draw.random() < 1 / (1 + math.exp(-score))), "user": f"u{draw.randrange(10)}",
                     "tags": tags})
    return rows


class SeveralWorkers(WorkersTest):
    """1, 2 and 3 workers train the same model of weighted keys."""

    def write_weighted(self, path, count, seed):
        samples, draw = Samples(count, seed), random.Random(seed)
        header = struct.pack("<8q", 1, count, 1, Samples.DENSE, 2 * Samples.SLOTS, 0, 0, 0)
        content = bytearray(wrapped(header, "Sum"))
        for label, dense, keys in samples.rows:
            record = struct.pack(f"<{1 + Samples.DENSE}f", label, *dense)
            for slot in keys:
                record += struct.pack(f"<i{len(slot)}I", len(slot), *slot)
            for slot in keys:
                weights = [draw.choice([-0.5, 0.25, 1, 3]) for _ in slot]
                record += struct.pack(f"<i{len(slot)}f", len(slot), *weights)
            content += wrapped(record, "Sum")
        path.write_bytes(content)

    def test_train_the_same_rows(self):
        self.write_weighted(self.train_file, self.SAMPLES, 1)
        self.write_weighted(self.test_file, self.SAMPLES // 4, 2)
        for more in ({}, {"streams": 3, "shuffle_buffer": 64}):
            self.write_model(lambda model: model.update(cistern={"key_weights": ["data1"], **more}))
            outcomes = []
            for turn, count in enumerate((1, 2, 3, 3)):
                with self.subTest(workers=count, more=more), Servers(2, self.folder) as fleet:
                    name = f"run-{len(more)}-{turn}"
                    self.train(name, fleet, count)
                    outcomes.append(self.outcome(name, fleet))
                    self.expect_close(self.rows(outcomes[-1][1], "deep"), self.rows(outcomes[0][1], "deep"))
                    self.expect_same_lines(self.lines(name), self.lines(f"run-{len(more)}-0"), pass_lines=False)
            self.assertEqual(outcomes[2], outcomes[3])


class KeyWeights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_key_weights_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.test = rows_of(400, 2)
        for name, rows in (("train", rows_of(3000, 1)), ("test", cls.test)):
            cls.write(f"{name}.csv", ["click", "user", "tags"],
                      ([r["click"], r["user"], "|".join(f"{t}:{w}" for t, w in r["tags"])] for r in rows))
            with open(cls.folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
                for row in rows:
                    print(json.dumps({"click": row["click"], "user": row["user"], "tags": [t for t, _ in row["tags"]],
                                      "shares": [w for _, w in row["tags"]]}), file=file)
        cls.trained = cls.train("run", "csv", "tags")

    @classmethod
    def cistern(cls, *words):
        return finish(start("cistern", *words, cwd=cls.folder))

    @classmethod
    def write(cls, name, header, rows):
        with open(cls.folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])

    @classmethod
    def train(cls, out, kind, weights, *more):
        return cls.cistern("train", f"train.{kind}", "--out", out, "--key-weights", weights, "--valid", f"test.{kind}",
                           "--set", "solver.num_epochs=2", *more)

    def ok(self, *words):
        result = self.cistern(*words)
        self.assertEqual(result.code, 0, str(result))
        return result

    def scores(self, path, rows=None):
        with open(self.folder / path, newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file, delimiter="\t" if path.endswith("tsv") else ",") if line]
        scores = [float(line[-1]) for line in lines if not line[-1][0].isalpha()]
        self.assertEqual(len(scores), len(self.test if rows is None else rows))
        return scores

    def predict(self, model, kind="csv"):
        self.ok("predict", model, "--input", f"test.{kind}", "--output", "p.csv")
        return self.scores("p.csv")

    def test_one_score_everywhere(self):
        self.assertEqual(self.trained.code, 0, str(self.trained))
        scores = self.predict("run")
        self.assertGreater(len(set(scores)), 200)
        model = json.loads((self.folder / "run/model.json").read_text(encoding="utf-8"))
        self.assertEqual(model["cistern"]["key_weights"], ["slots"])
        data = "run/data/test/file_list.txt"
        evaluated = self.ok("eval", "run", "--data", data, "--json").json()
        loss = -sum(math.log(p if r["click"] else 1 - p) for p, r in zip(scores, self.test)) / len(scores)
        self.assertAlmostEqual(evaluated["logloss"], loss, 6)
        self.ok("export", "serving", "run", "--out", "served")
        self.assertEqual(self.predict("served"), scores)
        self.ok("predict", "served", "--data", data, "--output", "d.tsv")
        self.assertEqual(self.scores("d.tsv"), scores)
        self.ok("predict", "run", "--data", data, "--output", "e.tsv")
        self.assertEqual(self.scores("e.tsv"), scores)
        # The weight of one key decides: without it, the score is another.
        self.write("one.csv", ["user", "tags"], [["u1", "t1:2|t2:0.5"], ["u1", "t1:0.5|t2:2"], ["u1", "t1|t2"], ["u1", "t1:1|t2:1"]])
        self.ok("predict", "run", "--input", "one.csv", "--output", "o.csv")
        a, b, c, d = self.scores("o.csv", range(4))
        self.assertGreater(a, c)
        self.assertGreater(c, b)
        self.assertEqual(c, d)
        self.ok("report", "run", "--out", "report.html", "--importance")
        self.ok("export", "onnx", "run", "--out", "net.onnx")
        network = json.loads((self.folder / "net.onnx.json").read_text(encoding="utf-8"))
        self.assertTrue(all(e["key_weights"] for e in network["embeddings"]))
        for reader in ("hugectr", "dnn-plugin"):
            refused = self.cistern("export", reader, "run", "--out", "not")
            self.assertNotEqual(refused.code, 0)
            self.assertIn("the keys of input 'slots' have weights (cistern.key_weights)", refused.err)

    def test_requests_carry_weights(self):
        self.ok("export", "serving", "run", "--out", "asked")
        scores = self.predict("run")
        keys, offsets, weights = self.keys_of("run/data/test")
        slots = 2
        with Serve(self.folder / "asked", "--log-requests", self.folder / "log", "--log-share", 1) as server:
            def ask(*inputs):
                return server.post(json.dumps({"inputs": [
                    {"name": name, "datatype": kind, "shape": [len(data)], "data": data} for name, kind, data in inputs]}),
                    model="run")

            named = [("slots.keys", "UINT64", keys), ("slots.offsets", "INT32", offsets)]
            status, answer, _ = ask(*named, ("slots.weights", "FP32", weights))
            self.assertEqual(status, 200, answer)
            self.assert_scores(answer, scores)
            lines = [f"{r['user']},{'|'.join(f'{t}:{w}' for t, w in r['tags'])}" for r in self.test]
            status, answer, _ = ask(("text", "BYTES", lines))
            self.assertEqual(status, 200, answer)
            self.assert_scores(answer, scores)
            for inputs, error in ((named, "input 'slots.weights' is missing"),
                                  ([*named, ("slots.weights", "FP32", weights[1:])], "as many as keys"),
                                  ([("text", "BYTES", ["u1,t1:nan"])], "'nan' is not the weight of a key")):
                status, answer, _ = ask(*inputs)
                self.assertEqual(status, 400)
                self.assertIn(error, answer["error"])
        self.assertEqual(len(offsets), slots * len(self.test) + 1)
        with Model(self.folder / "asked") as library:
            self.assertEqual(library.describe()["inputs"], [{"name": "slots", "slots": 2, "weights": True}])
            made, _ = library.predict_arrays(len(self.test), [], keys, offsets, weights=weights)
            self.assertEqual([struct.pack("<f", p) for p in made], [struct.pack("<f", p) for p in scores])
            for given in (None, [], weights[1:], [*weights[1:], math.nan]):
                with self.assertRaisesRegex(ServeError, "finite" if given and len(given) == len(keys) else "each key of this input has a weight"):
                    library.predict_arrays(len(self.test), [], keys, offsets, weights=given)
        self.ok("verify", "online", "log", "--state", "run")

    def assert_scores(self, answer, scores):
        outputs = {output["name"]: output["data"] for output in answer["outputs"]}
        # predict prints nine digits, which are those of a float
        self.assertEqual([struct.pack("<f", p) for p in outputs["probability"]], [struct.pack("<f", p) for p in scores])

    def keys_of(self, data):
        """Keys, offsets and weights of a data set, from the bytes of docs/formats.md."""
        keys, offsets, weights = [], [0], []
        for part in sorted((self.folder / data).glob("part-*.norm")):
            content = part.read_bytes()
            _, records, labels, dense, slots, *_ = struct.unpack_from("<8q", content, 4)
            self.assertEqual((labels, dense, slots), (1, 0, 4))
            at = 4 + 64 + 1
            for _ in range(records):
                at += 4 + 4 * labels
                read = []
                for _ in range(slots):
                    (count,) = struct.unpack_from("<i", content, at)
                    read.append(struct.unpack_from(f"<{count}Q", content, at + 4))
                    at += 4 + 8 * count
                for slot, bits in zip(read[:2], read[2:]):
                    keys += slot
                    offsets.append(len(keys))
                    weights += struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits)) if bits else [1] * len(slot)
                at += 1
        return keys, offsets, weights

    def test_other_forms_train_the_same_model(self):
        forms = [("jsonl", "tags=shares")]
        for kind, begin, end in (("equal.csv", "=", ""), ("paren.csv", "(", ")")):
            for name, rows in (("train", rows_of(3000, 1)), ("test", self.test)):
                self.write(f"{name}.{kind}", ["click", "user", "tags"],
                           ([r["click"], r["user"], "|".join(f"{t}{begin}{w}{end}" for t, w in r["tags"])] for r in rows))
            forms.append((kind, "tags"))
        if pyarrow is not None and has_parquet():
            for name in ("train", "test"):
                rows = [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.folder / f"{name}.parquet")
            forms.append(("parquet", "tags=shares"))
        scores = self.predict("run")
        for kind, weights in forms:
            with self.subTest(kind):
                trained = self.train(f"run-{kind}", kind, weights)
                self.assertEqual(trained.code, 0, str(trained))
                self.assertEqual(self.predict(f"run-{kind}", kind), scores)

    def test_steps_follow_the_formula(self):
        """Logistic regression on all rows at once, against its steps in double."""
        for combiner in ("sum", "mean"):
            with self.subTest(combiner=combiner):
                out = f"lr-{combiner}"
                model = {
                    "solver": {"max_iter": 3, "batchsize": 3000, "input_key_type": "I64"},
                    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 4}},
                    "layers": [
                        {"name": "data", "type": "Data", "check": "Sum", "source": "run/data/train/file_list.txt",
                         "label": {"top": "label", "label_dim": 1},
                         "sparse": [{"top": "slots", "type": "DistributedSlot", "slot_num": 2}]},
                        {"name": "rows", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "slots", "top": "rows",
                         "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": combiner}},
                        {"name": "flat", "type": "Reshape", "bottom": "rows", "top": "flat", "leading_dim": 2},
                        {"name": "logit", "type": "ReduceSum", "bottom": "flat", "top": "logit", "axis": 1},
                        {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}],
                    "cistern": {"key_weights": "slots", "embeddings": {"rows": {"initializer": {"type": "Zero"}}}}}
                (self.folder / f"{out}.json").write_text(json.dumps(model), encoding="utf-8")
                self.ok("train", f"{out}.json", "--out", out)
                self.ok("predict", out, "--data", "run/data/train/file_list.txt", "--output", "lr.tsv")
                labels = [r["click"] for r in rows_of(3000, 1)]
                expected = self.simulated(labels, combiner, 3, 4.0)
                for found, wanted in zip(self.scores("lr.tsv", labels), expected):
                    self.assertAlmostEqual(found, wanted, 6)

    def simulated(self, labels, combiner, steps, rate):
        """Predictions of the training rows after `steps` steps."""
        keys, offsets, weights = self.keys_of("run/data/train")
        rows = dict.fromkeys(keys, 0.0)
        for step in range(steps + 1):
            gradient, scores = dict.fromkeys(rows, 0.0), []
            for i, label in enumerate(labels):
                factors = []
                for s in (0, 1):
                    span = range(offsets[2 * i + s], offsets[2 * i + s + 1])
                    total = sum(weights[k] for k in span)
                    for k in span:
                        mean = weights[k] / total if total else 0.0
                        factors.append((keys[k], weights[k] if combiner == "sum" else mean))
                score = 1 / (1 + math.exp(-sum(f * rows[k] for k, f in factors)))
                scores.append(score)
                for k, f in factors:
                    gradient[k] += f * (score - label) / len(labels)
            if step == steps:
                break
            for k, g in gradient.items():
                rows[k] -= rate * g
        return scores

    def test_values_of_libsvm_lines(self):
        """Lines train as they are, with one score everywhere; three steps of a linear model against those in double."""
        draw, lines = random.Random(5), {}
        for name, count in (("train", 1500), ("test", 200)):
            lines[name] = []
            for _ in range(count):
                features = [(draw.randrange(20), draw.choice([-2, 0.5, 1, 1e-3, 0])) for _ in range(draw.randrange(6))]
                score = sum(x * (1 if k % 2 else -1) for k, x in features)
                lines[name].append((int(draw.random() < 1 / (1 + math.exp(-2 * score))), features))
            text = [" ".join([str(y), *(f"{k}:{x}" for k, x in features)]) for y, features in lines[name]]
            (self.folder / f"{name}.svm").write_text("\n".join(text) + "\n", encoding="utf-8")
        truth = [y for y, _ in lines["test"]]
        report = self.ok("train", "train.svm", "--out", "svm", "--valid", "test.svm", "--model", "lr", "--json").json()
        self.assertGreater(report["auc"], 0.85)
        self.ok("predict", "svm", "--input", "test.svm", "--output", "s.csv")
        scores = self.scores("s.csv", truth)
        self.ok("export", "serving", "svm", "--out", "svm-served")
        self.ok("predict", "svm-served", "--input", "test.svm", "--output", "t.csv")
        self.assertEqual(self.scores("t.csv", truth), scores)
        self.ok("predict", "svm", "--data", "svm/data/test/file_list.txt", "--output", "u.tsv")
        self.assertEqual(self.scores("u.tsv", truth), scores)
        with Model(self.folder / "svm-served") as library:
            described = library.describe()["text"]
            self.assertEqual((described["delimiter"], described["format"]), (" ", "libsvm"))
        with Serve(self.folder / "svm-served") as server:
            text = (self.folder / "test.svm").read_text(encoding="utf-8").splitlines()
            status, answer, _ = server.post(json.dumps({"inputs": [
                {"name": "text", "datatype": "BYTES", "shape": [len(text)], "data": text}]}), model="svm")
        self.assertEqual(status, 200, answer)
        self.assert_scores(answer, scores)

        # The next day has features and values that the first did not have.
        later = [(y, [(k + 10, x) for k, x in features]) for y, features in lines["test"]]
        (self.folder / "later.svm").write_text("\n".join(" ".join([str(y), *(f"{k}:{x}" for k, x in features)]) for y, features in later) + "\n")
        (self.folder / "ones.svm").write_text("\n".join(" ".join([str(y), *(f"{k}:1" for k, _ in features)]) for y, features in later) + "\n")
        for day, next_day, error in (("train", "later", None), ("train", "ones", None), ("ones", "later", "as all were in the data that this model was made of")):
            shutil.rmtree(self.folder / "days", ignore_errors=True)
            self.ok("train", f"{day}.svm", "--out", "days", "--valid", "test.svm" if day == "train" else "ones.svm", "--model", "lr",
                    "--set", "solver.num_epochs=1")
            more = self.cistern("train", "days", "--resume", "--out", "days", "--more", f"{next_day}.svm", "--json")
            if error is None:
                self.assertEqual(more.code, 0, str(more))
                keys = {k for _, features in lines["train"] + later for k, x in features if x or next_day == "ones"}
                self.assertEqual(more.json()["rows"], len(keys) + 1)  # and the stand-in of lines without features
            else:
                self.assertEqual(more.code, 4, str(more))
                self.assertIn(error, more.err)
                self.assertIn("--key-weights='*'", more.err)

        # Lines of one length, but for the last one; and files that hold no line, or a bad one first.
        (self.folder / "late.svm").write_text("1 3:1 4:1\n0 5:1 6:1\n" * 150 + "1 3:1\n", encoding="utf-8")
        self.assertIn("301 rows, 1 slots", self.ok("init", "late.svm", "--out", "late").out)
        for text, error in (("", "the file is empty"), ("1 3:abc\n0 4:1\n", "line 1: feature 0 is '3:abc', not index:value")):
            (self.folder / "bad.svm").write_text(text, encoding="utf-8")
            refused = self.cistern("init", "bad.svm", "--out", "bad")
            self.assertNotEqual(refused.code, 0)
            self.assertIn(error, refused.err)

        self.ok("data", "convert", "--format", "libsvm", "--libsvm-slots", "single", "--key-weights", "*",
                "--input", "train.svm", "--out", "svm-data")
        (self.folder / "svm-lr.json").write_text(json.dumps({
            "solver": {"max_iter": 3, "batchsize": 1500, "input_key_type": "I64"},
            "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 2}},
            "layers": [
                {"name": "data", "type": "Data", "check": "Sum", "source": "svm-data/file_list.txt",
                 "label": {"top": "label", "label_dim": 1},
                 "sparse": [{"top": "slots", "type": "DistributedSlot", "slot_num": 1}]},
                {"name": "rows", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "slots", "top": "rows",
                 "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "sum"}},
                {"name": "logit", "type": "Reshape", "bottom": "rows", "top": "logit", "leading_dim": 1},
                {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}],
            "cistern": {"key_weights": "slots", "embeddings": {"rows": {"initializer": {"type": "Zero"}}}}}),
            encoding="utf-8")
        self.ok("train", "svm-lr.json", "--out", "svm-lr")
        self.ok("predict", "svm-lr", "--input", "train.svm", "--output", "v.csv")
        weights = [0.0] * 20
        for step in range(4):
            gradient, expected = [0.0] * 20, []
            for label, features in lines["train"]:
                expected.append(1 / (1 + math.exp(-sum(weights[k] * x for k, x in features))))
                for k, x in features:
                    gradient[k] += x * (expected[-1] - label) / len(lines["train"])
            if step < 3:
                weights = [w - 2 * g for w, g in zip(weights, gradient)]
        for found, wanted in zip(self.scores("v.csv", expected), expected):
            self.assertAlmostEqual(found, wanted, 6)

    def test_bad_weights_are_refused_with_their_place(self):
        for text, error in (("t1:nan", "'nan' is not the weight of a key"), ("t1:1|t2:inf", "'inf'"), ("t1:x", "'x'")):
            self.write("bad.csv", ["click", "user", "tags"], [[1, "u1", "t1:1"], [0, "u2", text]])
            refused = self.cistern("data", "convert", "--input", "bad.csv", "--out", "bad", "--label", "click",
                                   "--key-weights", "tags")
            self.assertEqual(refused.code, 4, str(refused))
            self.assertIn("bad.csv: line 3: column 'tags'", refused.err)
            self.assertIn(error, refused.err)
        self.write("pair.csv", ["click", "user", "tags", "w"], [[1, "u1", "t1|t2", "1|2"], [0, "u2", "t1|t2", "1"]])
        refused = self.cistern("data", "convert", "--input", "pair.csv", "--out", "bad", "--label", "click", "--key-weights", "tags=w")
        self.assertEqual(refused.code, 4, str(refused))
        self.assertIn("pair.csv: line 3: column 'tags': 2 values, but column 'w' has 1 weights", refused.err)
        for weights, error in (("tagz", "no column 'tagz'"), ("tags=click", "has another role"), ("tags=tags", "its own values")):
            refused = self.cistern("data", "convert", "--input", "train.csv", "--out", "bad", "--label", "click", "--key-weights", weights)
            self.assertEqual(refused.code, 2, str(refused))
            self.assertIn(error, refused.err)
            refused = self.cistern("init", "train.csv", "--out", "bad", "--key-weights", weights)
            self.assertEqual(refused.code, 2, str(refused))
        self.assertFalse((self.folder / "bad").exists())

    def test_without_the_flag_weights_are_left_out(self):
        shown = self.ok("init", "train.csv", "--out", "plain")
        self.assertIn("their weights are not used unless they are asked for", shown.out + shown.err)
        model = json.loads((self.folder / "plain/model.json").read_text(encoding="utf-8"))
        self.assertNotIn("key_weights", model["cistern"])
        self.assertNotIn("key_weights", (self.folder / "plain/recipe.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
