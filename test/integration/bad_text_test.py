"""Input that the `cistern data` commands refuse: each error names file, line, cause and fix, with exit
code 2 (bad flags) or 4 (bad file contents), and leaves no files on disk."""

import gzip
import io
import json
import signal
import subprocess
import tarfile
import time
import unittest

from programs import BIN, LIMIT_SECONDS, ProgramTest, has_parquet, run

GOOD = "label,age,city\n1,2.5,a\n0,3,b\n1,4,c\n"
AGE = ("--dense", "age")
LIBSVM = "1 1:1 2:1\n0 4:1 5:1\n"
CRITEO = "\t".join(["1"] + ["3"] * 13 + ["68fd1e64"] * 26) + "\n"


def tar_of(data):
    """An archive with one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("table.csv")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


# name: (text of in.csv, flags, exit code, expected error)
TEXTS = {
    "cut off in a row": (GOOD + "1,4", AGE, 4, "in.csv: line 5: has 2 fields, but there are 3"),
    "too many fields": (GOOD + "1,2,3,4\n", AGE, 4, "line 5: has 4 fields"),
    "a quote left open": ('label,age,city\n1,2,"a\n' + GOOD, AGE, 4, "line 2: opens a quote"),
    "text after a quote": ('label,age,city\n1,2,"a"b\n', AGE, 4, "closing quote of field 3"),
    "cut off in a packed file": (gzip.compress(GOOD.encode())[:-12], AGE, 4, "in.csv is cut short: it ends inside a gzip"),
    "an archive": (b"PK\x03\x04rest", (), 4, "zip archive: unpack it"),
    "UTF-16": (GOOD.encode("utf-16"), (), 4, "save it as UTF-8"),
    "zero bytes": (bytes(999), (), 4, "line 1: holds a zero byte: this is not a text file"),
    "a stray zero byte": (b"label,a\n1,\0b\n", (), 4, "line 2: holds a zero byte: this is not a text file; tr -d"),
    "a tar archive": (tar_of(b"label,a\n1,b\n"), (), 4, "it is a tar archive: unpack it (tar -xf)"),
    "other bytes": (b"\x8e\xff\x01" * 99, (), 2, "the columns are \\x8e\\xff"),
    "old line ends": (GOOD.replace("\n", "\r"), (), 4, "no line follows the header line"),
    "another delimiter": (GOOD.replace(",", ";"), AGE, 2, "are label;age;city: check the delimiter"),
    "no header line": (GOOD.split("\n", 1)[1], AGE, 2, "if the file has no header line, name its columns"),
    "blanks in names": (GOOD.replace(",", ", ", 2), AGE, 2, "' age' contains a space"),
    "a name twice": ("label,a,a\n1,2,3\n", (), 4, "line 1: column 'a' is named twice"),
    "row numbers": (",label,a\n0,1,2\n", (), 2, "column 1 has no name in the header line"),
    "no such column": (GOOD, ("--dense", "aeg"), 2, "no column 'aeg'"),
    "empty": ("", (), 4, "in.csv is empty: no header line"),
    "only a header": ("label,a\n", (), 4, "no row to convert: no line follows"),
    "all rows skipped": (GOOD, ("--skip-rows", 9), 4, "all of them are skipped (--skip-rows)"),
    "another header": (GOOD + "label,city,age\n", AGE, 4, "line 5: is a header line with the columns in another order"),
    "text in a number": (GOOD + "1,x,a\n", AGE, 4, "line 5: column 'age': 'x' is not a number"),
    "hexadecimal": (GOOD + "1,0x1f,a\n", AGE, 4, "'0x1f' is not a number"),
    "no label at all": (GOOD + "NaN,1,a\n", AGE, 4, "'NaN' is not a number"),
    "too large": (GOOD + "1,1e40,a\n", AGE, 4, "'1e40' does not fit a float"),
    "no label": (GOOD + ",1,a\n", AGE, 4, "line 5: column 'label': the label is missing"),
    "a label below 0": (GOOD + "-1,1,a\n", AGE, 4, "a threshold of 0 makes labels 0 and 1"),
    "a key below 0": ("label,a\n1,-3\n", ("--keys", "raw"), 4, "line 2: column 'a': '-3' is not"),
    "a wide key": ("label,a\n1,4294967295\n", ("--keys", "raw", "--key-bits", 32), 4, "--key-bits=64"),
    "a huge key": ("label,a\n1,99999999999999999999\n", ("--keys", "raw"), 4, "hash the keys (--keys=hash)"),
    "libsvm as csv": (GOOD, ("--format", "libsvm"), 4, "line 1: column 'label': 'label,age,city'"),
    "libsvm, fewer": (LIBSVM + "1 1:1\n", ("--format", "libsvm"), 4, "line 3: has 1 features"),
    "libsvm, a weight": (LIBSVM + "1 1:3 2:1\n", ("--format", "libsvm"), 4, "(--key-weights='*', --any-value)"),
    "criteo, cut": (CRITEO[:-10] + "\n", ("--format", "criteo"), 4, "line 1: has 39 fields"),
    "names for criteo": (CRITEO, ("--format", "criteo", "--columns", "a,b"), 2, "columns does not apply"),
    "a name twice, ours": (GOOD, ("--columns", "label,a,a"), 2, "column 'a' is named twice (--columns="),
    "no range": (GOOD, ("--columns", "label,C9..C1"), 2, "'C9..C1' is not a range"),
    "a long delimiter": (GOOD, ("--delimiter", ";;"), 2, "--delimiter ';;': expected one character"),
    "a quote for it": (GOOD, ("--delimiter", '"'), 2, "neither a quote nor a line end"),
    "no stand-in": (GOOD, ("--dense-missing", "nan"), 2, "must be a number that fits a float (--dense-missing)"),
    "no threshold": (GOOD, ("--label-threshold", "nan"), 2, "must be a number, not NaN (--label-threshold)"),
    "a long count": (GOOD, ("--max-rows", "9" * 20), 2, "is not a whole number of 0 or more"),
    "vocabulary of old": (GOOD, (*AGE, "--vocab-in", "in.csv"), 4, "in.csv is not a vocabulary"),
    "vocabulary gone": (GOOD, (*AGE, "--vocab-in", "gone"), 2, "cannot open gone"),
    "no place for it": (GOOD, (*AGE, "--vocab-out", "/proc/no/v"), 2, "cannot create the folder /proc/no"),
    "input for it": (GOOD, (*AGE, "--vocab-out", "in.csv"), 2, "in.csv is an input file and would be"),
}

# flags of `cistern data`: expected error, with exit code 2
ASKED = {
    ("generate",): "name a --model, or the --slots",
    ("generate", "--slots", 2, "--samples", 0): "at least one sample",
    ("generate", "--slots", 2, "--click-rate", "x"): "x is not a number",
    ("generate", "--slots", 2, "--click-rate", 1): "between 0 and 1",
    ("generate", "--slot-sizes", "4,0"): "slot_size_array[1] is 0",
    ("generate", "--slot-sizes", 1 << 33, "--key-bits", 32): "more than 32 bits hold: use 64-bit keys",
    ("generate", "--slot-sizes", 1 << 33, "--format", "raw"): "more than the 32 bits of a Raw file hold",
    ("generate", "--slots", 2, "--set", "a=1"): "--set requires --model",
    ("generate", "--model", "model.json", "--slots", 9): "--slots: with --model the model's Data layer",
    ("criteo", "in.csv"): "name at least two files",
    ("criteo", "in.csv", "gone"): "gone: no such file",
    ("criteo", "in.csv", "in.csv", "--multi-hot-size", 10**12): "must be at most 1000 (--multi-hot-size)",
    ("criteo", "in.csv", "in.csv", "--cross", "C1_C99"): "two columns of C1 to C26",
}

DAYS = {
    "e is empty: no row": "",
    "e: line 2: the label is 2; a Criteo row begins with 0 or 1": CRITEO + "2" + CRITEO[1:],
    "e: line 2: has 39 fields": CRITEO + CRITEO[:-10] + "\n",
    "e: line 1: column I1 'x' is not a whole number": CRITEO.replace("3", "x", 1),
    "e is not a text file; it is a zip archive": b"PK\x03\x04" + bytes(99),
}


class BadText(ProgramTest):
    SAMPLES = 100

    def data(self, *words):
        before = self.names()
        result = run("cistern", "data", *words, cwd=self.folder)
        if result.code:
            self.assertEqual(self.names(), before, str(result))
        return result

    def names(self):
        return sorted(str(path) for path in self.folder.rglob("*"))

    def put(self, name, content):
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def convert(self, *flags):
        return self.data("convert", "--input", "in.csv", "--out", "out", *flags)

    def test_invalid_text_is_refused(self):
        for name, (text, flags, code, message) in TEXTS.items():
            with self.subTest(name):
                self.put("in.csv", text)
                self.expect(self.convert(*flags), code, message)

    def test_text_written_on_other_systems(self):
        for text in (GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD, GOOD[:-1], GOOD.replace("\n", "\n\n"),
                     GOOD.replace("2.5", '"2.5"'), GOOD.replace("2.5", " +2.5 "),
                     GOOD.replace("2.5", "1e-400"), GOOD.replace("a\n", "caf\u00e9\n")):
            with self.subTest(text):
                self.put("in.csv", text)
                made = self.expect(self.convert(*AGE, "--overwrite", "--json"), 0).json()
                self.assertEqual((made["samples"], made["slot_num"]), (3, 1))

    @unittest.skipUnless(has_parquet(), "this build has no Parquet")
    def test_parquet_that_is_cut_short(self):
        self.put("in.csv", b"PAR1" + bytes(99))
        self.expect(self.convert(), 4, "is cut short: it begins with PAR1")

    def test_columns_of_a_file_without_a_header(self):
        self.put("in.csv", CRITEO)
        made = self.expect(self.convert("--format", "tsv", "--columns", "click,I1..I13,C1..C26",
                                        "--label", "click", "--dense", "I1..I13", "--json"), 0).json()
        self.assertEqual((made["dense_dim"], made["slot_num"]), (13, 26))

    def test_fault_in_one_of_several_files(self):
        self.put("in.csv", GOOD)
        for text, code, message in ((GOOD + "1,x,2\n", 4, "b.csv: line 5: column 'age'"),
                                    ("label,city,aged\n", 4,
                                     "b.csv: line 1: there is no column 'age', which in.csv has"),
                                    ("", 4, "b.csv is empty")):
            with self.subTest(message):
                self.put("b.csv", text)
                self.expect(self.data("convert", "--input", "in.csv,b.csv", "--out", "out", *AGE),
                            code, message)
        self.expect(self.data("convert", "--input", "in.csv,gone", "--out", "out"), 2, "cannot open gone")
        (self.folder / "empty").mkdir()
        self.expect(self.data("convert", "--input", "empty", "--out", "out"), 2, "empty is a folder without part files")

    def test_existing_output_is_kept(self):
        self.put("in.csv", GOOD)
        self.put("file", "")
        for out, message in (("file", "exists and is not a data set"), (".", "in.csv is in ."),
                             ("file/out", "file is a file, not a folder"), ("", "no output folder was named"),
                             ("x" * 300, "File name too long")):
            with self.subTest(out):
                self.expect(self.data("convert", "--input", "in.csv", "--out", out, *AGE), 2, message)
        self.expect(self.convert(*AGE), 0)
        self.expect(self.convert(*AGE), 2, "overwrite it (--overwrite)")
        self.put("out/in.csv", GOOD)
        self.expect(self.data("convert", "--input", "out/in.csv", "--out", "out", "--overwrite", *AGE),
                    2, "out/in.csv is in out, which would be replaced")

    def test_bad_flags_of_other_data_commands(self):
        self.put("in.csv", CRITEO)
        for words, message in ASKED.items():
            with self.subTest(words):
                self.expect(self.data(*words, "--out", "out"), 2, message)

    def test_bad_criteo_days(self):
        self.put("d", CRITEO * 3)
        for message, text in DAYS.items():
            with self.subTest(message):
                self.put("e", text)
                self.expect(self.data("criteo", "d", "e", "--out", "out"), 4, message)

    def test_input_files_are_not_overwritten(self):
        words = ("keyset", "--model", "model.json", "--out")
        for name in ("train.norm", "train.txt", "model.json"):
            with self.subTest(name):
                before = (self.folder / name).read_bytes()
                self.expect(self.data(*words, name), 2, f"{name} is an input file and would be replaced")
                self.assertEqual((self.folder / name).read_bytes(), before)
                self.expect(run("cistern", "predict", "model.json", "--model", "none", "--data",
                                "train.txt", "--output", name, cwd=self.folder), 2, "is an input file")
        self.expect(self.data(*words, "."), 2, ". is a folder: name a file in it")
        self.expect(self.data(*words, "no/k"), 2, "there is no folder no")

    def test_inspect_compares_data_with_the_model(self):
        flags = ("train.norm", "--model", "model.json")
        self.expect(self.data("inspect", *flags), 0)
        self.expect(self.data("inspect", *flags, "--set", "layers.0.dense.dense_dim=3"), 2,
                    "train.norm has label_dim 1, dense_dim 2, slot_num 4, but model.json has 1, 3, 4")

    def test_interrupt_leaves_no_files(self):
        names = self.names()
        process = subprocess.Popen(
            [BIN / "cistern", "data", "generate", "--slots", "5", "--samples", str(10**9), "--out", "out",
             "--json"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end = time.monotonic() + LIMIT_SECONDS
        while self.names() == names and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(json.loads(out)["error"], "interrupted: nothing was written")
        self.assertEqual(self.names(), names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
