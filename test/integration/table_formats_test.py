"""The same table as CSV, TSV, gzip, zstd, Parquet and a folder of part files gives the same model and predictions.

Needs pyarrow (build/pyarrow has it), and a cistern with Parquet: otherwise exit code 77, skipped.
"""

import csv
import decimal
import gzip
import io
import json
import pathlib
import random
import shutil
import sys
import tempfile
import unittest
import uuid

from programs import ROOT, finish, has_parquet, start

sys.path.append(str(ROOT / "build/pyarrow"))
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    sys.exit(77)

HEADER = ["id", "label", "age", "price", "user", "tags"]


def people(count, seed):
    draw = random.Random(seed)
    for i in range(count):
        user, tags = draw.randrange(30), sorted(draw.sample(range(8), draw.randrange(4)))
        age = draw.randrange(18, 70) if draw.random() < 0.9 else None
        chance = 0.15 + 0.4 * (user % 2) + 0.4 * (3 in tags)
        yield [i, int(draw.random() < chance), age, draw.randrange(1, 999) / 4, f"u{user}", [f"t{t}" for t in tags]]


def text_of(rows, delimiter=","):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(HEADER)
    for row in rows:
        price = int(row[3]) if row[3] == int(row[3]) else row[3]
        writer.writerow([*row[:3], price, row[4], "|".join(row[5])])
    return out.getvalue()


def arrow_of(rows):
    columns = list(zip(*rows))
    types = [pyarrow.int64(), pyarrow.bool_(), pyarrow.int32(), pyarrow.float64(),
             pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), pyarrow.list_(pyarrow.string())]
    columns[1] = [bool(x) for x in columns[1]]
    arrays = [pyarrow.array(column, type=kind if i != 4 else pyarrow.string())
              for i, (column, kind) in enumerate(zip(columns, types))]
    arrays[4] = arrays[4].dictionary_encode()
    return pyarrow.table(dict(zip(HEADER, arrays)))


class TableFormatsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_tables_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.rows, cls.test = list(people(2000, 1)), list(people(300, 2))
        (cls.folder / "train.csv").write_text(text_of(cls.rows))
        (cls.folder / "train.tsv").write_text(text_of(cls.rows, "\t"))
        (cls.folder / "train.csv.gz").write_bytes(gzip.compress(text_of(cls.rows).encode()))
        (cls.folder / "train.csv.zst").write_bytes(pyarrow.compress(text_of(cls.rows).encode(), "zstd", asbytes=True))
        pyarrow.parquet.write_table(arrow_of(cls.rows), cls.folder / "train.parquet", row_group_size=700)
        spark = cls.folder / "spark"
        spark.mkdir()
        (spark / "_SUCCESS").write_text("")
        (spark / ".part-00000.crc").write_text("x")
        for i in range(2):
            pyarrow.parquet.write_table(arrow_of(cls.rows[i * 1000:i * 1000 + 1000]),
                                        spark / f"part-0000{i}-abc.snappy.parquet")
        (cls.folder / "test.csv").write_text(text_of(cls.test))
        pyarrow.parquet.write_table(arrow_of(cls.test), cls.folder / "test.parquet")

    def cistern(self, *words, code=0):
        result = finish(start("cistern", *words, cwd=self.folder))
        self.assertEqual(result.code, code, str(result))
        return result

    def convert(self, source, *flags):
        out = "data_" + source
        self.cistern("data", "convert", "--input", source, "--out", out, "--overwrite", "--dense", "age,price", "--ignore", "id",
                     "--min-count", 3, "--dense-transform", "standardize", *flags)
        return [(self.folder / out / name).read_bytes() for name in ("part-00000.norm", "vocabulary.txt")]

    def test_every_form_converts_to_the_same_bytes_also_with_counting(self):
        expected = self.convert("train.csv", "--multi", "tags")
        self.assertEqual(self.convert("train.tsv", "--multi", "tags", "--format", "tsv"), expected)
        for name in ("train.csv.gz", "train.csv.zst"):
            self.assertEqual(self.convert(name, "--multi", "tags"), expected, name)
        for name in ("train.parquet", "spark"):  # lists need no --multi
            self.assertEqual(self.convert(name), expected, name)

    def test_types_of_parquet_mean_what_csv_says(self):
        """The recipe of a CSV file, which DuckDB or Python wrote, encodes the Parquet file of the same table alike."""
        duckdb = ROOT / "test/golden/parquet/duckdb"
        ids = [str(uuid.UUID(int=(i % 7) << 60)) for i in range(60)]
        with open(self.folder / "plain.csv", "w") as file:
            writer = csv.writer(file)
            writer.writerow(["click", "user", "price", "tags", "emb.0", "emb.1", "code"])
            for i in range(60):
                writer.writerow([int(i % 3 == 0), ids[i], i / 4, f"{ids[i]}|{ids[i - 1]}", i / 8, i / 7, f"{i % 5:02x}ff0020"])
        stored = pyarrow.ExtensionArray.from_storage
        binary = pyarrow.array([uuid.UUID(text).bytes for text in ids], pyarrow.binary(16))
        vectors = pyarrow.array([[i / 8, i / 7] for i in range(60)], pyarrow.list_(pyarrow.float64(), 2))
        both = [text for i in range(60) for text in (ids[i], ids[i - 1])]
        pairs = pyarrow.ListArray.from_arrays(list(range(0, 121, 2)), stored(pyarrow.uuid(), pyarrow.array(
            [uuid.UUID(text).bytes for text in both], pyarrow.binary(16))))
        pyarrow.parquet.write_table(pyarrow.table({
            "click": stored(pyarrow.bool8(), pyarrow.array([int(i % 3 == 0) for i in range(60)], pyarrow.int8())),
            "user": stored(pyarrow.uuid(), binary),
            "price": pyarrow.array([decimal.Decimal(i) / 4 for i in range(60)], pyarrow.decimal64(9, 3)),
            "tags": pairs,
            "emb": stored(pyarrow.fixed_shape_tensor(pyarrow.float64(), [2]), vectors),
            "code": pyarrow.array([bytes([i % 5, 255, 0, 32]) for i in range(60)], pyarrow.binary())}),
            self.folder / "plain.parquet")
        for table in (duckdb / "types", self.folder / "plain"):
            self.cistern("init", f"{table}.csv", "--out", "of_types", "--overwrite", "--sparse", "user", "--min-count", 1)
            bytes_of = []
            for ending in ("csv", "parquet"):
                self.cistern("data", "convert", "--input", f"{table}.{ending}", "--recipe", "of_types", "--out", "types",
                             "--overwrite")
                bytes_of.append((self.folder / "types/part-00000.norm").read_bytes())
            self.assertEqual(bytes_of[0], bytes_of[1], table)

    def test_every_form_is_packed_to_the_same_shards(self):
        def pack(source, *flags):
            out = "shards_" + source
            self.cistern("data", "pack", "--input", source, "--out", out, "--samples-per-shard", 300,
                         "--groups", "1:3,3:9", "--length-column", "tags", *flags)
            shards = sorted((self.folder / out).glob("*/*.tar"))
            manifest = json.loads((self.folder / out / "manifest.json").read_text())
            self.assertEqual(manifest["skipped"][0]["cause"], "length in no group")
            return [path.read_bytes() for path in shards], manifest["skipped"][0]["samples"]
        expected = pack("train.csv", "--multi", "tags")
        self.assertGreater(len(expected[0]), 4)
        for name in ("train.parquet", "spark"):  # lists need no --multi
            self.assertEqual(pack(name), expected, name)
        said = self.cistern("data", "pack", "--input", "train.parquet", "--out", "x", "--separator", ";", code=2)
        self.assertIn("leave the separator out (--separator)", said.err)

    def test_a_model_of_a_parquet_folder_predicts_csv_and_parquet_alike(self):
        said = self.cistern("train", "spark", "--label", "label", "--out", "run", "--set", "solver.num_epochs=3")
        self.assertIn("lists", said.err)
        for name in ("test.csv", "test.parquet"):
            self.cistern("predict", "run", "--input", name, "--keep", "id,tags", "--output", name + ".out.csv")
        self.assertEqual((self.folder / "test.csv.out.csv").read_text(),
                         (self.folder / "test.parquet.out.csv").read_text())

    def test_lists_have_the_separator_of_the_recipe(self):
        """A model of text in which other characters separate the values."""
        semicolons = text_of(self.rows).replace("|", ";")
        (self.folder / "semicolons.csv").write_text(semicolons)
        objects = [dict(zip(HEADER, [*row[:3], int(row[3]) if row[3] == int(row[3]) else row[3], *row[4:]]))
                   for row in self.rows]
        (self.folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in objects))
        expected = self.convert("semicolons.csv", "--multi", "tags", "--separator", ";")
        for name in ("lists.jsonl", "train.parquet"):
            self.cistern("data", "convert", "--input", name, "--out", "again", "--overwrite", "--recipe", "data_semicolons.csv")
            self.assertEqual((self.folder / "again/part-00000.norm").read_bytes(), expected[0], name)

    def test_a_table_is_one_whatever_its_name_ends_in(self):
        text = text_of(self.rows)
        objects = "".join(json.dumps(dict(zip(HEADER, line.split(",")))) + "\n" for line in text.splitlines()[1:])
        rows = []
        for name, content in (("t.csv", text), ("t.txt", text), ("t.data", text_of(self.rows, "\t")), ("table", text),
                              ("t.json", objects)):
            (self.folder / name).write_text(content)
            said = self.cistern("train", name, "--label", "label", "--out", "run_" + name, "--set", "solver.num_epochs=1")
            rows.append([line for line in said.out.splitlines() if line.startswith("rows ")])
        self.assertEqual(len(rows[0]), 1)
        self.assertEqual(rows, [rows[0]] * 5)

    def test_predictions_can_be_parquet_or_gzip(self):
        self.cistern("train", "train.csv", "--label", "label", "--out", "plain", "--set", "solver.num_epochs=1")
        for name in ("p.csv", "p.csv.gz", "p.parquet"):
            self.cistern("predict", "plain", "--input", "test.csv", "--keep", "id,user", "--output", name)
        plain = (self.folder / "p.csv").read_text()
        self.assertEqual(gzip.decompress((self.folder / "p.csv.gz").read_bytes()).decode(), plain)
        table = pyarrow.parquet.read_table(self.folder / "p.parquet")
        self.assertEqual(table.column_names, ["id", "user", "prediction"])
        read = list(csv.DictReader(io.StringIO(plain)))
        self.assertEqual(table["user"].to_pylist(), [row["user"] for row in read])
        for a, b in zip(table["prediction"].to_pylist(), read):
            self.assertAlmostEqual(a, float(b["prediction"]), 7)

    def test_folders_that_are_not_tables_are_refused_with_the_reason(self):
        unfinished = self.folder / "unfinished"
        (unfinished / "_temporary").mkdir(parents=True)
        nested = self.folder / "nested/2026"
        nested.mkdir(parents=True)
        (self.folder / "empty").mkdir()
        for name, message in (("unfinished", "_temporary"), ("nested", "such as 2026"),
                              ("empty", "without part files")):
            result = self.cistern("data", "convert", "--input", name, "--out", "x", code=2)
            self.assertIn(message, result.err)

    def test_bad_parquet_is_refused(self):
        whole = (self.folder / "train.parquet").read_bytes()
        (self.folder / "cut.parquet").write_bytes(whole[:len(whole) // 2])
        result = self.cistern("data", "convert", "--input", "cut.parquet", "--out", "x", code=4)
        self.assertIn("cut.parquet", result.err)
        lists = pyarrow.table({"label": [1, 0], "who": [[["a"]], [["b"]]]})
        pyarrow.parquet.write_table(lists, self.folder / "lists.parquet")
        result = self.cistern("data", "convert", "--input", "lists.parquet", "--out", "x", code=2)
        self.assertIn("column 'who'", result.err)
        bars = pyarrow.table({"label": [1, 0], "tags": [["a|b"], ["c"]]})
        pyarrow.parquet.write_table(bars, self.folder / "bars.parquet")
        result = self.cistern("data", "convert", "--input", "bars.parquet", "--out", "x", code=4)
        self.assertIn("row 1", result.err)

    def test_the_head_is_that_of_every_format(self):
        def head(table, *flags):
            return self.cistern("data", "head", table, "--rows", "3", *flags).out

        first = json.loads(head("train.csv", "--json"))
        self.assertEqual(first["columns"], HEADER)
        self.assertEqual([row[4] for row in first["rows"]], [row[4] for row in self.rows[:3]])
        self.assertEqual(json.loads(head("train.tsv", "--json"))["rows"], first["rows"])
        self.assertEqual(len(json.loads(head("train.parquet", "--json"))["rows"]), 3)
        lines = [line.split() for line in head("train.csv").splitlines()]
        self.assertEqual(lines[0], ["COLUMN", "ROW", "1", "ROW", "2", "ROW", "3"])
        self.assertEqual(lines[5], ["user", *(row[4] for row in self.rows[:3])])
        self.assertIn("none.csv", self.cistern("data", "head", "none.csv", code=2).err)

    def test_text_has_a_key_and_the_key_its_texts(self):
        self.convert("train.csv", "--multi", "tags")
        said = self.cistern("data", "lookup", "user=u3", "tags=t5", "--recipe", "data_train.csv", "--json")
        keys = {one["text"]: one["key"] for one in json.loads(said.out)["found"]}
        said = self.cistern("data", "lookup", *keys.values(), "--recipe", "data_train.csv", "--input",
                            "train.parquet", "--json")
        found = {one["text"]: one for one in json.loads(said.out)["found"]}
        self.assertEqual(set(found), {"u3", "t5"})
        self.assertEqual(found["u3"]["rows"], sum(row[4] == "u3" for row in self.rows))
        self.assertEqual(found["t5"]["rows"], sum("t5" in row[5] for row in self.rows))
        result = self.cistern("data", "lookup", "17", "--recipe", "data_train.csv", code=2)
        self.assertIn("--input", result.err)


if __name__ == "__main__":
    if not has_parquet():
        sys.exit(77)
    unittest.main()
