"""One score in every place that predicts: random small models, each trained a little.

    CISTERN_BIN=build/release/bin test/integration/one_score_test.py [--models 200] [--first SEED]

`predict`, `predict` in other batches, served files, HTTP, the C library (which Python's serve.Model calls) and the log of
`serve` give the same bits, also of tables that store rows in 16 bits; `eval` gives the metrics of these predictions. Rows
that are served in 16 and 8 bits give one score in all served places, too. onnxruntime, if it is installed with NumPy, agrees within 1e-5. The same samples as tar shards, and
with one key a slot as Raw and Parquet files, have the scores of the Norm files.
"""

import io
import json
import math
import pathlib
import random
import shutil
import struct
import sys
import tarfile
import tempfile
import unittest

import serving_library
from hugectr_models import data, embedding, fc, layer, loss, model, sparse
from programs import ROOT, finish, has_parquet, start, wrapped
from serve_process import Serve

sys.path.append(str(ROOT / "build" / "onnxruntime"))
try:
    import numpy as np
    import onnxruntime
except ImportError:
    onnxruntime = None

sys.path.append(str(ROOT / "build" / "pyarrow"))
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

MODELS = 10
FIRST = 1
ONNX_MOST = 1e-5  # difference of a probability


def same(a, b):
    return [struct.pack("<f", x) for x in a] == [struct.pack("<f", x) for x in b]


class Case:
    """A model file and data for it, from a seed."""

    def __init__(self, seed, folder):
        self.draw, self.folder = random.Random(seed), folder
        draw = self.draw
        self.wide = draw.random() < 0.5
        self.dense = draw.randrange(1, 4)
        self.weighted = draw.random() < 0.3
        self.one_key = seed % 3 == 1  # a slot
        self.inputs = [{"top": f"data{i + 1}", "slots": draw.randrange(1, 5), "dim": draw.randrange(2, 6),
                        "combiner": draw.choice(["sum", "mean"]), "weights": draw.random() < 0.4,
                        "rows": draw.choice(["embedding", "embedding", "admitted", "ctr"])}
                       for i in range(draw.randrange(1, 3))]
        for one in self.inputs:  # places of a slot; 0: its keys are pooled
            one["lengths"] = [draw.randrange(4) for _ in range(one["slots"])] if draw.random() < 0.4 else [0] * one["slots"]
            one["reversed"] = draw.random() < 0.5
            one["keeps"], one["places"] = draw.choice(["last", "first"]), sum(max(n, 1) for n in one["lengths"])
        self.train, self.test = self.samples(400, 30), self.samples(60, 34)  # the test has keys that are new
        self.write("train", self.train)
        self.write("test", self.test)
        (folder / "model.json").write_text(json.dumps(self.content(seed), indent=1), encoding="utf-8")

    def samples(self, count, keys):
        draw, samples = self.draw, []
        for _ in range(count):
            slots = []
            for number, one in enumerate(self.inputs):
                for slot in range(one["slots"]):
                    found = [1000 * number + 100 * slot + draw.randrange(keys) for _ in range(1 if self.one_key else draw.choice([0, 1, 1, 2, 3]))]
                    weights = [draw.choice([1, 1, 0.5, 2, -0.75, 3e-3]) for _ in found] if one["weights"] else None
                    if weights and draw.random() < 0.05:
                        weights = [0.0] * len(found)
                    slots.append((found, weights))
            dense = [struct.unpack("<f", struct.pack("<f", draw.uniform(-1, 2)))[0] for _ in range(self.dense)]
            odd = sum(key * (w or 1) for found, ws in slots for key, w in zip(found, ws or found)) % 2 < 1
            label = int(draw.random() < 0.3 + 0.4 * odd + 0.1 * (dense[0] > 0))
            samples.append((label, draw.choice([0, 0.5, 1, 3]), dense, slots))
        return samples

    def write(self, name, samples):
        """Norm files, as docs/formats.md describes them."""
        key = "q" if self.wide else "I"
        spread = [weighted for one in self.inputs for weighted in [one["weights"]] * one["slots"]]
        slots = len(spread) + sum(spread)
        content = bytearray(wrapped(struct.pack("<8q", 1, len(samples), 1 + self.weighted, self.dense, slots, 0, 0, 0), "Sum"))
        for label, weight, dense, read in samples:
            labels = [label, weight] if self.weighted else [label]
            record = struct.pack(f"<{len(labels) + len(dense)}f", *labels, *dense)
            for found, _ in read:
                record += struct.pack(f"<i{len(found)}{key}", len(found), *found)
            for found, weights in read:
                if weights is not None:
                    bits = struct.unpack(f"<{len(found)}I", struct.pack(f"<{len(found)}f", *weights))
                    record += struct.pack(f"<i{len(found)}{key}", len(found), *bits)
            content += wrapped(record, "Sum")
        (self.folder / f"{name}.norm").write_bytes(content)

    def write_tar(self, path, samples):
        """Fields by default, from Python's tarfile; of weights that are all 1 nothing is said."""
        with tarfile.open(path, "w") as tar:
            for number, (label, weight, dense, read) in enumerate(samples):
                fields = {"label": [label, weight] if self.weighted else label, "dense": dense, "slots": [found for found, _ in read]}
                if any(one["weights"] for one in self.inputs):
                    fields["weights"] = [None if all(w == 1 for w in weights) else weights for _, weights in read if weights is not None]
                text = json.dumps(fields).encode()
                member = tarfile.TarInfo(f"{number}.json")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text))

    def write_raw(self, path, samples):
        content = bytearray()
        for label, weight, dense, read in samples:
            labels = [label, weight] if self.weighted else [label]
            weights = [w for _, given in read for w in given or []]
            content += struct.pack(f"<{len(labels) + len(dense)}f{len(read)}I{len(weights)}f", *labels, *dense, *(found[0] for found, _ in read), *weights)
        path.write_bytes(content)

    def write_parquet(self, path, samples):
        columns = [[label for label, *_ in samples]] + ([[float(weight) for _, weight, *_ in samples]] if self.weighted else [])
        columns += [[dense[i] for *_, dense, _ in samples] for i in range(self.dense)]
        reads = list(zip(*(read for *_, read in samples)))
        columns += [[found[0] for found, _ in slot] for slot in reads]
        columns += [[weights[0] for _, weights in slot] for slot in reads if slot[0][1] is not None]
        pyarrow.parquet.write_table(pyarrow.table(columns, names=[f"c{i}" for i in range(len(columns))]), path)

    def content(self, seed):
        draw = self.draw
        cistern = {"embeddings": {}, "init_scheme": draw.choice(["hugectr", "exact"])}
        layers, flat = [data(self.dense, [sparse(one["top"], one["slots"], 3 * one["slots"]) for one in self.inputs],
                             source="train.norm", eval_source="test.norm")], []
        lengths = []
        for number, one in enumerate(self.inputs):
            name = f"rows{number + 1}"
            sequences = sum(n > 0 for n in one["lengths"])
            if sequences:
                layers[0]["sparse"][number].update(sequence_lengths=one["lengths"], sequence_keeps=one["keeps"], sequence_reversed=one["reversed"], length_top=f"lengths{number + 1}")
                lengths.append((f"lengths{number + 1}", sequences))
            layers += [embedding(name, one["top"], one["dim"], one["combiner"]),
                       layer("Reshape", f"flat{number + 1}", name, leading_dim=one["places"] * one["dim"])]
            flat.append(f"flat{number + 1}")
            if one["rows"] == "admitted":
                cistern["embeddings"][name] = {"admit_after": draw.randrange(1, 30)}
            elif one["rows"] == "ctr":
                cistern["embeddings"][name] = {"accessor": "ctr", "embedx_threshold": draw.choice([0.5, 3]),
                                               "optimizer": {"type": "AdaGradShared", "learning_rate": 0.1}}
            elif draw.random() < 0.5:
                cistern["embeddings"][name] = {"optimizer": {"type": draw.choice(["SGD", "Adam", "AdaGrad"]), "learning_rate": 0.05}}
        width = self.dense + sum(one["places"] * one["dim"] for one in self.inputs) + sum(n for _, n in lengths)
        layers.append(layer("Concat", "all", [*flat, "dense", *(name for name, _ in lengths)]))
        top = "all"
        for number in range(draw.randrange(4)):
            name = f"step{number + 1}"
            kind = draw.choice(["fc", "fc", "BatchNorm", "ELU", "LayerNorm", "MultiCross", "Sigmoid", "PReLU_Dice", "PReLU", "Dropout"])
            if kind == "fc":
                width = draw.randrange(4, 20)  # a narrow one may die, and tell nothing
                layers += [fc(f"{name}_fc", top, width), layer("ReLU", name, f"{name}_fc")]
            else:
                keys = {"ELU": {"elu_param": {"alpha": 0.7}}, "MultiCross": {"mc_param": {"num_layers": 2}},
                        "BatchNorm": {"bn_param": {"factor": 0.3, "eps": 0.01}}, "Dropout": {"rate": 0.3},
                        "PReLU_Dice": {"prelu_dice_param": {"alpha": 0.2, "eps": 1e-4}}, "LayerNorm": {"ln_param": {"eps": 0.01}}}
                layers.append(layer(kind, name, top, **keys.get(kind, {})))
            top = name
        layers += [fc("logit", top, 1), loss("logit")]
        if self.weighted:
            cistern["sample_weights"] = True
        if any(one["weights"] for one in self.inputs):
            cistern["key_weights"] = [one["top"] for one in self.inputs if one["weights"]]
        # Rows that earn their weights have no deferred updates.
        deferred = all(one["rows"] == "embedding" for one in self.inputs)
        optimizer = {"type": "Adam", "update_type": draw.choice(["Local", "Global", "LazyGlobal"]) if deferred else "Local",
                     "adam_hparam": {"learning_rate": 0.02}}
        made = model(optimizer, layers, batchsize=50, batchsize_eval=draw.choice([16, 60]), max_iter=12, eval_interval=0,
                     seed=seed, input_key_type="I64" if self.wide else "I32")
        for number in range(len(self.inputs)):
            if draw.random() < 0.3 and optimizer["update_type"] == "Local":
                cistern["embeddings"].setdefault(f"rows{number + 1}", {})["row_type"] = "bfloat16"
        made["cistern"] = cistern
        return made

    def spans(self):
        """By input: the slots of a sample."""
        first = 0
        for one in self.inputs:
            yield one, slice(first, first + one["slots"])
            first += one["slots"]

    def request(self):
        inputs = [("dense", "FP32", [len(self.test), self.dense], [x for sample in self.test for x in sample[2]])]
        for one, span in self.spans():
            keys, offsets, weights = [], [0], []
            for *_, slots in self.test:
                for found, given in slots[span]:
                    keys += found
                    weights += given or []
                    offsets.append(len(keys))
            inputs += [(f"{one['top']}.keys", "UINT64", [len(keys)], keys), (f"{one['top']}.offsets", "INT32", [len(offsets)], offsets)]
            if one["weights"]:
                inputs.append((f"{one['top']}.weights", "FP32", [len(weights)], weights))
        return inputs

    def by_place(self, one, slots):
        """(keys, weights) of each place of the slots of one input; and the lengths of its sequences."""
        places, lengths = [], []
        for length, (found, given) in zip(one["lengths"], slots):
            weights = given or [1.0] * len(found)
            if length == 0:
                places.append((found, weights))
                continue
            kept = slice(-length, None) if one["keeps"] == "last" else slice(length)
            single = [([key], [weight]) for key, weight in zip(found[kept], weights[kept])]
            places += (single[::-1] if one["reversed"] else single) + [([], [])] * (length - len(single))
            lengths.append(len(single))
        return places, lengths

    def pooled(self, one, span, rows):
        """[samples, places, dim] in float, as the description of an ONNX file has it, and [samples, sequences]."""
        out = np.zeros((len(self.test), one["places"], one["dim"]), dtype=np.float32)
        all_lengths = []
        for i, (*_, slots) in enumerate(self.test):
            places, lengths = self.by_place(one, slots[span])
            all_lengths.append(lengths)
            for s, (found, weights) in enumerate(places):
                total = sum(weights)
                for key, weight in zip(found, weights):
                    factor = weight if one["combiner"] == "sum" else weight / total if total else 0.0
                    out[i, s] += np.float32(factor) * rows.get(key, np.zeros(one["dim"], dtype=np.float32))
        return out, np.array(all_lengths, dtype=np.float32)


class OneScore(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_one_score_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ok(self, *words):
        result = finish(start("cistern", *words, cwd=self.folder))
        self.assertEqual(result.code, 0, str(result))
        return result

    def predictions(self, *words, data="test.norm"):
        self.ok("predict", *words, "--data", data, "--output", "p.tsv")
        return [float(line.split("\t")[-1]) for line in (self.folder / "p.tsv").read_text(encoding="utf-8").splitlines()]

    def check(self, seed):
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        case = Case(seed, self.folder)
        self.ok("train", "model.json", "--out", "run", "--threads", 1 + seed % 2)
        scores = self.predictions("run")
        self.assertEqual(len(scores), len(case.test))
        self.assertGreater(len(set(scores)), 5)
        other = self.predictions("run", "--set", "solver.batchsize_eval=7")
        self.assertTrue(same(other, scores), (scores, other))
        self.check_formats(case, scores)
        self.check_metrics(case, scores)
        precision = random.Random(seed).choice(["float32", "float32", "float16", "bfloat16", "int8"])
        self.ok("export", "serving", "run", "--out", "served", "--precision", precision)
        served = self.predictions("served")
        if precision == "float32":
            self.assertTrue(same(served, scores), (scores, served))
        else:
            self.assertLess(max(abs(a - b) for a, b in zip(served, scores)), 0.1)
        self.check_requests(case, served)
        if onnxruntime is not None:
            self.check_onnx(case, scores)

    def check_formats(self, case, scores):
        files = {"Tar": case.write_tar}
        if case.one_key:
            files["Raw"] = case.write_raw
            if pyarrow is not None and has_parquet():
                files["Parquet"] = case.write_parquet
        for form, write in files.items():
            write(self.folder / f"test.{form}", case.test)
            more = ["--set", "layers.data.float_label_dense=true"] if form == "Raw" else []
            with self.subTest(form=form):
                found = self.predictions("run", "--set", f"layers.data.format={form}", "--set", "layers.data.check=None", *more, data=f"test.{form}")
                self.assertTrue(same(found, scores), (scores, found))

    def check_metrics(self, case, scores):
        rows = [(label, score, weight if case.weighted else 1) for score, (label, weight, _, _) in zip(scores, case.test)]
        total = sum(w for *_, w in rows)
        # A float near 0 or 1 is clipped as in docs/formats.md.
        log = -sum(w * math.log(max(p if y else 1 - p, 1e-7)) for y, p, w in rows) / total
        pairs = right = 0.0
        for y, a, v in rows:
            for z, b, w in rows:
                if y == 1 and z == 0:
                    pairs += v * w
                    right += v * w * ((a > b) + 0.5 * (a == b))
        found = self.ok("eval", "run", "--data", "test.norm", "--json").json()
        self.assertAlmostEqual(found["auc"], right / pairs, 6)
        self.assertAlmostEqual(found["logloss"], log, 5)

    def check_requests(self, case, served):
        inputs = case.request()
        body = {"inputs": [{"name": n, "datatype": t, "shape": s, "data": d} for n, t, s, d in inputs]}
        with Serve(self.folder / "served", "--log-requests", self.folder / "log", "--log-share", 1) as server:
            status, answer, _ = server.post(json.dumps(body), model="run")
            self.assertEqual(status, 200, answer)
            found = next(output["data"] for output in answer["outputs"] if output["name"] == "probability")
            self.assertTrue(same(found, served), (served, found))
        self.ok("verify", "online", "log", "--state", "run")
        given = {name: values for name, *_, values in inputs}
        arrays = [(given[f"{one['top']}.keys"], given[f"{one['top']}.offsets"], given.get(f"{one['top']}.weights")) for one in case.inputs]
        with serving_library.Model(self.folder / "served") as library:
            self.assertTrue(same(library.predict_inputs(len(case.test), given["dense"], arrays)[0], served))
            if any(weights is not None for *_, weights in arrays):
                with self.assertRaisesRegex(serving_library.ServeError, "each key of this input has a weight"):
                    library.predict_inputs(len(case.test), given["dense"], [(keys, offsets, None) for keys, offsets, _ in arrays])

    def rows(self, one, name):
        """{key: vector} of the saved model (docs/formats.md)."""
        rows = {}
        for part in (self.folder / "run/model" / name).glob("part-*"):
            if part.suffix == ".json":
                continue
            for line in part.read_text(encoding="ascii").splitlines():
                words = line.split()
                if one["rows"] == "ctr":
                    cells = [words[6], *(words[10:] if len(words) > 9 else ["0"] * (one["dim"] - 1))]
                else:
                    cells = words[1:1 + one["dim"]]
                rows[int(words[0])] = np.array(cells, dtype=np.float32)
        return rows

    def check_onnx(self, case, scores):
        if any(one["rows"] == "admitted" for one in case.inputs):
            return  # the text of a row that has no weights yet does not tell its vector
        self.ok("export", "onnx", "run", "--out", "net.onnx")
        description = json.loads((self.folder / "net.onnx.json").read_text(encoding="utf-8"))
        inputs = {description["dense"]["input"]: np.array([sample[2] for sample in case.test], dtype=np.float32)}
        for one, span in case.spans():
            found = next(e for e in description["embeddings"] if e["sparse"] == one["top"])
            self.assertEqual(found.get("key_weights", False), one["weights"])
            self.assertEqual(found["combiner"], one["combiner"])
            self.assertEqual(found.get("sequence_lengths", [0] * one["slots"]), one["lengths"])
            inputs[found["input"]], lengths = case.pooled(one, span, self.rows(one, found["table"]))
            if any(one["lengths"]):
                self.assertEqual((found["sequence_keeps"], found["sequence_reversed"]), (one["keeps"], one["reversed"]))
                inputs[next(e["input"] for e in description["lengths"] if e["sparse"] == one["top"])] = lengths
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(self.folder / "net.onnx"), options, providers=["CPUExecutionProvider"])
        found = session.run(["probability"], inputs)[0][:, 0].tolist()
        self.assertLess(max(abs(a - b) for a, b in zip(found, scores)), ONNX_MOST)

    def test_random_models(self):
        for seed in range(FIRST, FIRST + MODELS):
            with self.subTest(seed=seed):
                self.check(seed)


if __name__ == "__main__":
    for flag in ("--models", "--first"):
        if flag in sys.argv:
            at = sys.argv.index(flag)
            value = int(sys.argv[at + 1])
            del sys.argv[at:at + 2]
            MODELS, FIRST = (value, FIRST) if flag == "--models" else (MODELS, value)
    unittest.main(verbosity=2)
