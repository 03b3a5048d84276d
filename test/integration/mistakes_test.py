"""Common mistakes of a first hour: each ends with the right exit code, and the message names the next step.

MISTAKES lists them: what is typed in a folder with a CSV, a data set, a model file and a run; the exit code; and
what the message must hold (docs/troubleshooting.md has most of them with their cause). SILENT lists mistakes that
would train or predict wrongly: each is refused, or warned about.

    mistakes_test.py --print    prints every command with its message, as a table
"""

import csv
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from programs import BIN, finish, start

HEADER = ["id", "label", "age", "price", "user", "city"]


def clicks(count, seed):
    draw = random.Random(seed)
    for i in range(count):
        user, city = draw.randrange(40), draw.choice(["paris", "rome", "oslo"])
        age = draw.randrange(18, 70)
        chance = 0.2 + 0.4 * (user % 2) + 0.2 * (city == "rome")
        yield [i, int(draw.random() < chance), age, round(draw.lognormvariate(2, 1), 2), f"u{user}", city]


def write(path, rows, header=HEADER, **options):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n", **options)
        if header:
            out.writerow(header)
        out.writerows(rows)


def model_file():
    return {
        "solver": {"num_epochs": 2, "batchsize": 64, "input_key_type": "I64", "seed": 1},
        "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.01}},
        "cistern": {"eval_every_epoch": True},
        "layers": [
            {"name": "data", "type": "Data", "check": "Sum", "source": "data/train/file_list.txt",
             "eval_source": "data/test/file_list.txt", "label": {"top": "label", "label_dim": 1},
             "dense": {"top": "dense", "dense_dim": 2},
             "sparse": [{"top": "slots", "slot_num": 2, "max_feature_num_per_sample": 2}]},
            {"name": "embedding", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "slots",
             "top": "embedding", "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
            {"type": "Reshape", "bottom": "embedding", "top": "flat", "leading_dim": 8},
            {"type": "Concat", "bottom": ["flat", "dense"], "top": "input"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "input", "top": "fc1",
             "fc_param": {"num_output": 8}},
            {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
            {"name": "logit", "type": "InnerProduct", "bottom": "relu1", "top": "logit",
             "fc_param": {"num_output": 1}},
            {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"},
        ],
    }


def prepare(folder):
    rows = list(clicks(1200, 1))
    write(folder / "train.csv", rows)
    write(folder / "test.csv", clicks(300, 2))
    write(folder / "noheader.csv", rows[:200], header=None)
    write(folder / "semicolon.csv", rows, delimiter=";")
    write(folder / "nolabel.csv", [row[2:] for row in rows], HEADER[2:])
    write(folder / "tiny.csv", rows[:3])
    (folder / "array.json").write_text(json.dumps([dict(zip(HEADER, row)) for row in rows]))
    (folder / "columns.json").write_text(json.dumps({name: {row[0]: row[i] for row in rows}
                                                     for i, name in enumerate(HEADER)}))
    write(folder / "header_only.csv", [])
    write(folder / "twice.csv", [row[:5] + [row[4]] for row in rows], HEADER[:5] + ["user"])
    write(folder / "yes.csv", [[row[0], ["no", "yes"][row[1]], *row[2:]] for row in rows])
    write(folder / "stars.csv", [[row[0], row[0] % 5, *row[2:]] for row in rows])
    write(folder / "one_class.csv", [[row[0], 1, *row[2:]] for row in rows])
    write(folder / "badage.csv", [[*rows[0][:2], "abc", *rows[0][3:]], *rows[1:]])
    write(folder / "moved.csv", [[row[0], row[1], row[4], row[3], row[2], row[5]] for row in rows],
          ["id", "label", "user", "price", "age", "city"])
    write(folder / "less.csv", [row[:5] for row in rows], HEADER[:5])
    write(folder / "ragged.csv", [rows[0], rows[1][:4], rows[2]])
    (folder / "latin.csv").write_bytes("\n".join(",".join(map(str, row)) for row in [HEADER, *rows]).replace(
        "oslo", "K\u00f6ln").encode("latin-1") + b"\n")
    write(folder / "constant.csv", [[*row, "x"] for row in rows], [*HEADER, "always"])
    write(folder / "leak.csv", [[*row, ["n", "y"][row[1]]] for row in rows], [*HEADER, "outcome"])
    write(folder / "strangers.csv", [[*row[:4], "x" + row[4], row[5]] for row in rows])
    draw = random.Random(3)
    write(folder / "random.csv", [[row[0], draw.randrange(2), *row[2:]] for row in rows])
    write(folder / "comma.csv", [[row[1], str(row[3]).replace(".", ","), row[4]] for row in rows],
          ["label", "price", "user"], delimiter=";")
    write(folder / "shifted.csv", [[row[0], row[1], row[4], row[2], row[3], row[5]] for row in rows])
    write(folder / "wide.csv", [[row[1], *(f"v{draw.randrange(9)}" for _ in range(1500))] for row in rows[:200]],
          ["label", *(f"s{i}" for i in range(1500))])
    (folder / "empty.csv").write_text("")
    (folder / "mac.csv").write_bytes((folder / "train.csv").read_bytes().replace(b"\n", b"\r"))
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (folder / "page.html").write_text("<!DOCTYPE html><html><body>404</body></html>")
    (folder / "comma.json").write_text('{"solver": {"batchsize": 4,}}')
    (folder / "text.tsv.json").write_text("label\tage\n0\t31\n")
    model = model_file()
    (folder / "clicks.json").write_text(json.dumps(model))
    model["solver"]["batchsiz"] = 4
    (folder / "typo.json").write_text(json.dumps(model))
    model = model_file()
    model["layers"][1]["sparse_embedding_hparam"]["embedding_vec_size"] = 5
    (folder / "shape.json").write_text(json.dumps(model))
    (folder / "things").mkdir()
    (folder / "things/notes.txt").write_text("mine")
    for words in (
            ["data", "convert", "--input", "train.csv", "--out", "data/train", "--dense", "age,price",
             "--dense-transform", "log1p", "--min-count", 2, "--ignore", "id"],
            ["data", "convert", "--input", "test.csv", "--out", "data/test", "--recipe", "data/train"],
            ["data", "convert", "--input", "test.csv", "--out", "data/nolog", "--dense", "age,price",
             "--ignore", "id"],
            ["data", "convert", "--input", "train.csv", "--out", "data/bits32", "--dense", "age,price",
             "--ignore", "id", "--key-bits", 32],
            ["train", "clicks.json", "--out", "run"],
            ["train", "clicks.json", "--out", "unsaved", "--no-save-model"],
            ["export", "serving", "run", "--out", "serving"]):
        result = finish(start("cistern", *words, cwd=folder))
        assert result.code == 0, (words, str(result))


# What is typed after `cistern`, the exit code, and texts of the message, the next step among them.
MISTAKES = [
    # Commands and flags.
    ("trian clicks.json --out a", 2, "unknown command 'trian'", "did you mean 'train'"),
    ("trian clicks.json --out a --resume --frobnicate 3", 2, "unknown command 'trian'", "did you mean 'train'"),
    ("frobnicate --out a", 2, "unknown command 'frobnicate'", "cistern --help"),
    ("train clicks.json --uot a", 2, "unknown flag '--uot'", "did you mean '--out'"),
    ("train clicks.json", 2, "--out is required", "name a folder"),
    ("train --out a", 2, "MODEL is required", "--help"),
    ("data convert --input train.csv --out a --min-count 2 --min-count 3", 2,
     "--min-count was given twice"),
    ("data convert --input train.csv --out a --min-count two", 2, "--min-count", "two"),
    ("data convert --input train.csv --out a --keys rae", 2, "--keys", "raw"),
    ("data convert --input train.csv", 2, "--out", "required"),
    ("train clicks.json --out a --set solver.batchsiz=4", 2, "solver.batchsiz", "did you mean 'batchsize'"),
    ("train clicks.json --out a --set solver.batchsize", 2, "write path=value"),
    ("train clicks.json run", 2, "run"),
    # A CSV in place of a model file, and the other way round.
    ("train page.html --out a", 2, "page.html", "not a model file"),
    ("train data/train/file_list.txt --out a", 2, "not a model file", "Data layer"),
    ("train data/train/part-00000.norm --out a", 2, "not a model file", "Data layer"),
    ("train missing.csv --out a", 2, "missing.csv", "No such file"),
    ("train missing.json --out a", 2, "missing.json", "No such file"),
    ("train comma.json --out a", 2, "comma.json: line 1", "syntax error"),
    ("train typo.json --out a", 2, "solver.batchsiz", "did you mean 'batchsize'"),
    ("train shape.json --out a", 2, "leading_dim is 8", "must be a multiple"),
    ("train things --out a", 2, "things is a folder", "name the folder of a run, a model file, or a table"),
    ("train data/train --out a", 2, "is a folder", "it holds a data set: name a model file"),
    ("init clicks.json", 2, "clicks.json", "model file"),
    # Tables.
    ("train nolabel.csv --out a", 2, "which column is the label", "--label COLUMN"),
    ("train train.csv --label clicked --out a", 2, "clicked", "columns are"),
    ("train tiny.csv --out a", 2, "too few", "or more"),
    ("train header_only.csv --out a", 4, "no row", "header"),
    ("train empty.csv --out a", 4, "empty"),
    ("train mac.csv --out a", 2, "end in CR alone", "tr '"),
    ("train array.json --out a", 2, "one JSON array", "jq -c '.[]' array.json"),
    ("train array.json --label label --out a", 2, "one JSON array", "jq -c '.[]' array.json"),
    ("init columns.json --label label", 2, "no object a line", 'orient="records", lines=True'),
    ("train binary.csv --out a", 4, "not a text file"),
    ("train twice.csv --out a", 4, "'user' is named twice", "rename"),
    ("train one_class.csv --out a", 2, "in every row"),
    ("train stars.csv --out a", 2, "label", "--positive", "--label COLUMN"),
    ("train train.csv --model deepfmm --out a", 2, "--model", "deepfm"),
    ("train wide.csv --model dcnv2 --out a", 2, "million parameters", "--model dcn or --model deepfm"),
    ("train train.csv --test missing.csv --out a", 2, "missing.csv", "No such file"),
    ("train train.csv --out a --resume", 2, "is a table, not a run", "--more"),
    ("init train.csv --out things/../clicks.json", 2, "clicks.json"),
    # Conversion.
    ("data convert --input noheader.csv --out a", 4, "no header", "--columns=label,age"),
    ("data convert --input semicolon.csv --out a", 2, "--delimiter=';'"),
    ("data convert --input train.csv --out a --label clicked", 2, "no column 'clicked'", "columns are"),
    ("data convert --input badage.csv --out a --dense age", 4, "line 2", "'abc' is not a number"),
    ("data convert --input yes.csv --out a", 4, "line 2", "--positive"),
    ("data convert --input ragged.csv --out a", 4, "line 3", "check the delimiter"),
    ("data convert --input train.csv --out data/train", 2, "exists", "--overwrite"),
    ("data convert --input train.csv --out a --keys raw", 4, "--keys=hash"),
    ("data convert --input train.csv --out a --recipe data/train --dense age", 2, "--dense", "leave out --dense"),
    ("data convert --input train.csv --out a --recipe things", 2, "things", "recipe"),
    # Runs.
    ("train clicks.json --out run", 2, "already holds", "--resume"),
    ("train clicks.json --out run --resume --set solver.num_epochs=1 --set solver.batchsize=32", 2,
     "batchsize", "started with"),
    ("train run --resume --more missing.csv", 2, "missing.csv", "No such file"),
    ("train run --more test.csv", 2, "--more", "--resume"),
    ("train clicks.json --out new --resume", 0,),
    ("predict unsaved --input test.csv --output p.csv", 2, "unsaved", "name the folder of a training run"),
    ("train clicks.json --out unsaved --resume", 0, "nothing was committed yet: starting from the beginning"),
    ("train clicks.json --out a --servers 127.0.0.1:1 --connect-timeout 0.2", 3, "127.0.0.1:1", "cistern-server"),
    ("train clicks.json --out a --servers localhost", 2, "localhost", "port"),
    ("train clicks.json --out a --device cuda", 1, "GPU", "cpu"),
    ("train clicks.json --out a --set layers.fc1.fc_param.num_output=1048576 --set solver.batchsize=1000000000", 2,
     "this machine has", "solver.batchsize"),
    ("train clicks.json --out a --set layers.data.source=data/bits32/file_list.txt", 2, "transform", "convert it again"),
    ("train clicks.json --out a --set layers.data.source=nowhere.txt", 2, "nowhere.txt"),
    ("train clicks.json --out a --set layers.data.source=train.csv", 4, "convert csv"),
    ("train clicks.json --out clicks.json", 2, "clicks.json", "file"),
    # Predictions, exports, reports.
    ("predict run --input less.csv --output p.csv", 2, "no column 'city'", "(--add-column=city)"),
    ("predict run --input less.csv --output p.csv --add-column ctiy", 2, "reads no column 'ctiy'"),
    ("predict run --data data/test/file_list.txt --output p.tsv --add-column city", 2, "rows of text"),
    ("eval run --data data/test/file_list.txt --add-column city", 2, "not to data sets"),
    ("predict run --input badage.csv --output p.csv", 4, "line 2", "'abc' is not a number"),
    ("predict run --output p.csv", 2, "--input", "--data"),
    ("predict run --input test.csv", 2, "--output"),
    ("predict run --input test.csv --keep name --output p.csv", 2, "no column 'name'", "columns are"),
    ("predict clicks.json --input test.csv --output p.csv", 2, "no trained model", "name the folder of a run"),
    ("predict run --input test.csv --output p.json", 2, "json is not written", "*.csv"),
    ("predict run test.csv --output p.csv", 2, "unknown argument", "did you mean '--input test.csv'"),
    ("eval run --test test.csv", 2, "unknown flag", "did you mean '--data'"),
    ("predict run --data test.csv --keep city --output p.csv", 0, "samples      300"),
    ("predict run --data data/train/file_list.txt --keep city --output p.csv", 2, "--keep", "rows of text"),
    ("predict train.csv --input test.csv --output p.csv", 2, "train.csv is a table", "predict RUN --input"),
    ("predict missing --input test.csv --output p.csv", 2, "missing", "the folder of a run"),
    ("eval run --data test.csv", 0, "auc  ", "samples      300"),
    ("plan train.csv", 2, "not a model file", "cistern train train.csv"),
    ("plan things/notes.txt", 2, "not a model file"),
    ("report train.csv", 2, "is a file, not a run", "--out folder"),
    ("eval run --data data/bits32/file_list.txt", 2, "transform", "convert it again"),
    ("eval things", 2, "things"),
    ("export serving run --out things", 2, "things", "another"),
    ("export serving run --out data", 2, "data", "another"),
    ("serve run", 2, "is the folder of a training", "cistern export serving run"),
    ("serve things", 2, "things", "export serving"),
    ("report things", 2, "things"),
    ("report run missing --out r.html", 2, "missing"),
    # A folder below a file.
    ("predict run --input test.csv --output train.csv/p.csv", 2, "--output", "train.csv is a file, not a folder"),
    ("train clicks.json --out train.csv/a", 2, "--out", "train.csv is a file, not a folder"),
    ("init train.csv --out train.csv/a", 2, "--out", "train.csv is a file, not a folder"),
    ("tune train.csv --out train.csv/a", 2, "--out", "train.csv is a file, not a folder"),
    ("data convert --input train.csv --out test.csv/a", 2, "--out", "test.csv is a file, not a folder"),
    ("export serving run --out train.csv/a", 2, "--out", "train.csv is a file, not a folder"),
    ("report run --out train.csv/a.html", 2, "--out", "train.csv is a file, not a folder"),
    ("verify train.csv", 2, "train.csv is a file", "saved model"),
    ("table ls", 2, "--servers"),
    ("status", 2, "--servers"),
    ("tune train.csv --out run/model.json", 2, "model.json"),
    ("tune train.csv --out run --overwrite", 2, "run holds a run", "name another folder"),
    ("tune clicks.json --out a --set layers.data.eval_source=", 2, "evaluation data", "eval_source"),
]

# Mistakes that earlier versions trained or predicted with, exit code 0: refused (code) or warned about (0).
SILENT = [
    ("eval run --data data/nolog/file_list.txt", 2, "log1p"),  # without --dense-transform
    ("predict run --data data/nolog/file_list.txt --output p.tsv", 2, "log1p"),
    ("eval clicks.json --model run --set layers.fc1.fc_param.num_output=9 --data data/test/file_list.txt", 2, "fc1"),
    ("train run --resume --more data/nolog/file_list.txt", 2, "log1p"),
    ("train clicks.json --out b --set layers.data.eval_source=data/nolog/file_list.txt", 2, "log1p"),
    ("data convert --input train.csv --out a", 0, "slot 'price' holds numbers with a fraction", "--bucket price"),
    ("data convert --input latin.csv --out a", 0, "not UTF-8", "iconv"),
    ("train latin.csv --label label --out a --set solver.num_epochs=1", 0, "not UTF-8", "iconv"),
    ("train constant.csv --out a --set solver.num_epochs=1", 0, "the same in every row"),
    ("train leak.csv --out a --set solver.num_epochs=1", 0, "LEAK?"),
    ("init comma.csv --out a", 0, "decimal comma"),
    ("init yes.csv --label label --positive maybe --out a", 2, "maybe"),
    ("predict run --input latin.csv --output p.csv", 0, "not UTF-8", "iconv"),
    ("predict run --input strangers.csv --output p.csv", 0, "slot 'user': 100 % of its values are not in the"),
    ("data convert --input strangers.csv --recipe data/train --out a", 0, "slot 'user': 100 % of its values"),
    ("train train.csv --test strangers.csv --out a --set solver.num_epochs=1", 0, "slot 'user': 100 % of its values"),
    ("train train.csv --test train.csv --out a --set solver.num_epochs=1", 0, "evaluation rows are also training"),
    ("train random.csv --out a --set solver.num_epochs=3", 0, "as that of chance"),
    ("train clicks.json --out a --set optimizer.adam_hparam.learning_rate=0", 0, "is 0: they keep their first values",
     "does not fall"),
    ("predict run --input shifted.csv --output p.csv", 4, "line 2", "column 'age'"),
]


class MistakesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_mistakes_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        prepare(cls.folder)

    def check(self, mistakes):
        for line, code, *messages in mistakes:
            with self.subTest(line):
                shutil.rmtree(self.folder / "a", ignore_errors=True)
                result = finish(start("cistern", *line.split(), cwd=self.folder))
                self.assertEqual(result.code, code, str(result))
                for message in messages:
                    self.assertIn(message, result.err + result.out)

    def test_every_mistake_names_the_next_step(self):
        self.check(MISTAKES)

    def test_no_mistake_is_silent(self):
        self.check(SILENT)

    def test_columns_in_another_order_are_found_by_name(self):
        for name in ("train.csv", "moved.csv"):
            result = finish(start("cistern", "predict", "run", "--input", name, "--output", name + ".p",
                                  cwd=self.folder))
            self.assertEqual(result.code, 0, str(result))
        self.assertEqual((self.folder / "train.csv.p").read_text(), (self.folder / "moved.csv.p").read_text())


def print_table():
    """Every command with its message, for docs and for comparing versions."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        for line, *_ in MISTAKES + SILENT:
            shutil.rmtree(folder / "a", ignore_errors=True)
            done = subprocess.run(["timeout", "20", str(BIN / "cistern"), *line.split()], cwd=folder,
                                  capture_output=True, text=True, check=False)
            said = [one for one in done.stderr.splitlines() if not one.startswith("event=")]
            print(f"$ cistern {line}\n[{done.returncode}] " + "\n    ".join(said[-4:]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print_table()
    else:
        unittest.main()
