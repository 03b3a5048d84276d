"""Model and data files with common mistakes: each is refused at once with the fault and its place."""

import copy
import gzip
import json
import struct
import subprocess
import time
import unittest

from programs import BIN, ProgramTest, Samples, run, wrapped

SECONDS = 20  # limit for a refusal, on a busy machine


class BadFiles(ProgramTest):
    """Each case maps the expected error message to a change of the good file."""

    SAMPLES = 300

    def refused(self, code, message, out="run"):
        before = time.monotonic()
        result = run("cistern", "train", self.config, "--out", self.folder / out, "--threads", 1)
        self.expect(result, code, "error: ", message)
        self.assertLess(time.monotonic() - before, SECONDS)
        self.assertFalse((self.folder / out / "model").exists())
        return result

    def refused_before_start(self, code, message):
        self.refused(code, message)
        self.assertFalse((self.folder / "run").exists())


def put(path, value):
    """Returns a change that sets the value at `path`: keys and indexes separated by dots."""
    def change(content):
        *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in way:
            content = content[key]
        content[last] = value
    return change


def also(layer):
    """Returns a change that inserts a layer, which no other reads, before the first InnerProduct."""
    return lambda content: content["layers"].insert(4, {"name": "more", "top": "x", **layer})


def twice(index):
    return lambda content: content["layers"].insert(index, copy.deepcopy(content["layers"][index]))


MODELS = {
    "solver.batchsize: expected integer >= 1, found the string": put("solver.batchsize", "100"),
    "solver.batchsize: expected integer >= 1, found the number 0": put("solver.batchsize", 0),
    "solver.batchsize: expected integer >= 1, found the number -5": put("solver.batchsize", -5),
    "at most 4294967295, found the number 1e+30": put("solver.display", 1e30),
    "solver.snapshot: expected integer >= 0, found the number 1.5": put("solver.snapshot", 1.5),
    "solver.lr_policy: expected fixed, found 'step'": put("solver.lr_policy", "step"),
    "max_iter and num_epochs exclude each other": put("solver.max_iter", 10),
    "solver.eval_metrics[0]: unknown metric 'AUX'; did you mean 'AUC'?":
        put("solver.eval_metrics", ["AUX"]),
    "solver.mixed_precision: expected 128": put("solver.mixed_precision", 100),
    "solver.dense_model_file: gone: no such file": put("solver.dense_model_file", "gone"),
    "optimizer.type: expected Adam": put("optimizer.type", "Adagard"),
    "optimizer.adam_hparam.learnin_rate: unknown key; did you mean 'learning_rate'?":
        put("optimizer.adam_hparam.learnin_rate", 1),
    "optimizer.momentum_sgd_hparam: missing": put("optimizer.type", "MomentumSGD"),
    "layers: the first layer must be Data": put("layers", []),
    "layers[1]: is a second Data layer": twice(0),
    "two embeddings are named 'deep'": twice(1),
    "top 'fc1' is already defined by an earlier layer": twice(4),
    "layers[4].type: unknown layer type 'Wavelet'": also({"type": "Wavelet", "bottom": "dense"}),
    "layers[0].sparse[0].slot_num: expected integer >= 1": put("layers.0.sparse.0.slot_num", 0),
    "leading_dim is 16 and bottom 'deep' is [b, 5, 4]": put("layers.0.sparse.0.slot_num", 5),
    "layers[0].label.label_dim: expected integer >= 1": put("layers.0.label.label_dim", 0),
    "logit 'fc2' is [b, 1] and label 'label' is [b, 3]": put("layers.0.label.label_dim", 3),
    "layers[0].check: expected None | Sum, found 'CRC'": put("layers.0.check", "CRC"),
    "layers[0].format: expected Norm | Raw | Parquet | Tar, found 'CSV'": put("layers.0.format", "CSV"),
    "sparse_embedding_hparam.combiner: expected 0": put(
        "layers.1.sparse_embedding_hparam.combiner", 2),
    "embedding_vec_size: expected integer >= 1": put(
        "layers.1.sparse_embedding_hparam.embedding_vec_size", -4),
    "'../deep' cannot be a name": put("layers.1.name", "../deep"),
    "its top is an empty string": put("layers.1.top", ""),
    "layer 'concat1' (layers[3], Concat): a top is an empty string": put("layers.3.top", ""),
    "layer 'concat1' (layers[3], Concat): has no top": put("layers.3.top", []),
    "has 0 bottoms; must have 1": put("layers.4.bottom", []),
    "'fc1' is both its bottom and its top": put("layers.4.bottom", "fc1"),
    "bottom 'fc2' closes a cycle: fc2 <- dropout1 <- relu1 <- fc1 <- fc2": put("layers.4.bottom", "fc2"),
    "bottom 'data1' is a sparse input: only an embedding can read it": put("layers.4.bottom", "data1"),
    "layers[4].fc_param.num_output: expected integer >= 1 and <= 1048576": put(
        "layers.4.fc_param.num_output", 1 << 40),
    "layers[6].rate: expected number": put("layers.6.rate", 1.5),
    "layers[8].lambda: missing; regularizer L2 needs it": put("layers.8.regularizer", "L2"),
    "layers: no loss": lambda content: content["layers"].pop(),
    "range [9, 99) exceeds bottom 'concat1', which is [b, 18]": also(
        {"type": "Slice", "bottom": "concat1", "ranges": [[9, 99]]}),
    "layers[4].ranges[0]: expected [lo, hi] with 0 <= lo < hi": also(
        {"type": "Slice", "bottom": "concat1", "ranges": [[9, 3]]}),
    "weight_dims is [3, 3] and bottom 'dense' is [b, 2]": also(
        {"type": "Multiply", "bottom": "dense", "weight_dims": [3, 3]}),
    "out_dim is 7 and bottom 'concat1' is [b, 18]": also(
        {"type": "FmOrder2", "bottom": "concat1", "out_dim": 7}),
    "a sum over the samples of a batch": also({"type": "ReduceSum", "bottom": "dense", "axis": 0}),
    "bottoms 'dense' [b, 2] and 'concat1' [b, 18] have different shapes": also(
        {"type": "Add", "bottom": ["dense", "concat1"]}),
    "but this machine has": also(
        {"type": "Multiply", "bottom": "dense", "weight_dims": [2, 4000000000]}),
}

# These change the text of the model file, not the parsed tree.
TEXTS = {
    "line 1, column 1: ": lambda text: b"",
    "JSON has no comments": lambda text: text.replace(b'"solver"', b'// c\n"solver"', 1),
    "JSON has no NaN": lambda text: text.replace(b"0.999", b"NaN"),
    "number overflow parsing '1e400'": lambda text: text.replace(b"0.999", b"1e400"),
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "ill-formed UTF-8": lambda text: text.replace(b"fc1", b"f\xe9"),
    "model.json: is nested ": lambda text: text.replace(
        b'"layers"', b'"gpu": ' + b"[" * 200000 + b"]" * 200000 + b', "layers"', 1),
    "key 'solver' occurs twice": lambda text: text.replace(b'"solver"', b'"solver": {}, "solver"', 1),
    "the file: expected an object, found an array": lambda text: b"[]",
    "missing closing quote": lambda text: text[:text.index(b"Adam") + 2],
}


class BadModels(BadFiles):

    def test_model_with_one_bad_value(self):
        for message, change in MODELS.items():
            with self.subTest(message):
                self.write_model(change)
                self.refused_before_start(2, message)

    def test_malformed_model_text(self):
        good = self.config.read_bytes()
        for message, change in TEXTS.items():
            with self.subTest(message):
                self.config.write_bytes(change(good))
                self.refused_before_start(2, message)

    def test_path_that_is_not_a_model(self):
        for path, message in ((self.folder, "is a folder, and not that of a run"),
                              (self.folder / "no.json", "no.json: No such file"),
                              (self.train_file, "is a binary file")):
            with self.subTest(path.name):
                self.expect(run("cistern", "train", path, "--dry-run"), 2, message)

    def test_path_that_is_not_utf8(self):
        """A path or a value in another encoding gives an error, and valid JSON."""
        path = bytes(self.folder / "caf") + b"\xe9.json"
        for words in (["train", path, "--dry-run"], ["data", "inspect", path],
                      ["train", self.config, "--dry-run", "--set", b"layers.0.source=\xe9"]):
            with self.subTest(words[-1]):
                result = subprocess.run([BIN / "cistern", *words, "--json"], check=False,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        timeout=SECONDS)
                self.assertEqual(result.returncode, 2, result)
                self.assertEqual(json.loads(result.stdout)["exit_code"], 2)

    def test_byte_order_mark_is_skipped(self):
        self.config.write_bytes(b"\xef\xbb\xbf" + self.config.read_bytes())
        self.run_ok("cistern", "train", self.config, "--dry-run")


def samples(change):
    """300 records, of which the 218th is changed."""
    rows = Samples(300, seed=1).rows
    content = wrapped(struct.pack("<8q", 1, len(rows), 1, Samples.DENSE, Samples.SLOTS, 0, 0, 0), "Sum")
    for number, (label, dense, keys) in enumerate(rows):
        if number == 217:
            label, dense = change(label, dense)
        record = struct.pack("<3f", label, *dense)
        for slot in keys:
            record += struct.pack(f"<i{len(slot)}I", len(slot), *slot)
        content += wrapped(record, "Sum")
    return content


NAN = float("nan")

# Faults in the header or the first record, which are found before the run creates any file.
FIRST = {
    (4, "is empty: neither a file list nor a data file"): lambda good: b"",
    (4, "has 63 bytes, fewer than a Norm header takes"): lambda good: good[:63],
    (4, "record 0: the file is cut short"): lambda good: good[:69],
    (4, "ends inside a gzip stream"): lambda good: gzip.compress(good)[:40],
    (4, "zip archive"): lambda good: b"PK\x03\x04" + bytes(range(200)),
    (4, '"format": "Parquet"'): lambda good: b"PAR1" + bytes(range(200)),
    (4, "convert csv, tsv"): lambda good: b"label,a,b\n1,2,3\n" * 20,
    (4, "does not begin with a Norm header"): lambda good: b"\xff" * 500,
    (4, "the checksum of the header does not match"): lambda good: good[:6] + b"\x07" + good[7:],
    (2, 'set "check": "None" there'): lambda good: bytes(8) + good[12:68] + good[69:],
    (2, "label_dim 1, dense_dim 2, slot_num 9, but the model expects"): lambda good: wrapped(
        struct.pack("<8q", 1, 300, 1, 2, 9, 0, 0, 0), "Sum") + good[69:],
    (4, "line 1 declares 7 files, but 1 paths follow"): lambda good: b"7\ntrain.norm\n",
    (4, "line 1 of a file list must be the number of files"): lambda good: b"1.5\ntrain.norm\n",
    (2, "line 2: no file 'gone.norm'"): lambda good: b"1\ngone.norm\n",
}

LATER = {
    "record 16: the file is cut short": lambda good: good[:1000],
    "bytes follow the last of the 300 records": lambda good: good + b"abc",
    "record 217: label 0 is not a finite number": lambda good: samples(lambda _, d: (NAN, d)),
    "record 217: label 0 is 2, but a cross entropy takes": lambda good: samples(lambda _, d: (2, d)),
    "record 217: label 0 is -1, but a cross entropy takes": lambda good: samples(lambda _, d: (-1, d)),
    "record 217: dense feature 1 is not a finite number": lambda good: samples(
        lambda label, dense: (label, [dense[0], NAN])),
}


class BadData(BadFiles):

    def test_faults_in_header_or_first_record(self):
        good = self.train_file.read_bytes()
        bad = self.folder / "bad.norm"
        self.write_model(lambda content: content["layers"][0].update(source=str(bad)))
        for (code, message), change in FIRST.items():
            with self.subTest(message):
                bad.write_bytes(change(good))
                self.refused_before_start(code, message)
                inspected = run("cistern", "data", "inspect", bad)
                self.assertIn(inspected.code, (0, 2, 4), str(inspected))

    def test_faults_found_while_training(self):
        good = self.train_file.read_bytes()
        for number, (message, change) in enumerate(LATER.items()):
            with self.subTest(message):
                self.train_file.write_bytes(change(good))
                self.refused(4, message, out=f"run{number}")

    def test_predict_accepts_unknown_labels(self):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run", "--threads", 1)
        flags = (self.config, "--model", self.folder / "run", "--data", self.train_file)
        output = ("--output", self.folder / "predictions.tsv")
        self.train_file.write_bytes(samples(lambda _, dense: (-1, dense)))
        self.expect(run("cistern", "eval", *flags), 4, "record 217: label 0 is -1")
        self.run_ok("cistern", "predict", *flags, *output)
        lines = (self.folder / "predictions.tsv").read_text(encoding="utf-8").splitlines()
        self.assertTrue(lines[217].startswith("-1\t"), lines[217])
        self.train_file.write_bytes(samples(lambda _, dense: (7, dense)))
        self.expect(run("cistern", "predict", *flags, *output), 4, "label 0 is 7")

    def test_file_lists_written_on_other_systems(self):
        for text in (f"1\r\n{self.train_file}\r\n", f"\ufeff1\n{self.train_file}\n", "1\ntrain.norm",
                     f" 1 \n\n{self.train_file}  \n\n"):
            with self.subTest(text):
                self.train_list.write_bytes(text.encode("utf-8"))
                self.run_ok("cistern", "data", "inspect", self.train_list)


if __name__ == "__main__":
    unittest.main(verbosity=2)
