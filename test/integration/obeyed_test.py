"""Fixes that messages name are typed as they stand, and lead to a better state.

OBEYED lists a mistake, what its message must hold, and what a person who obeys it types next. `{}` in a step is the
text that stands in the message between the two marks of the entry, so that the message, not this file, decides what
is typed. The last step must end with exit code 0.
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from mistakes_test import HEADER, clicks, model_file, write
from programs import BIN, finish, start


def prepare(folder):
    rows = list(clicks(900, 1))
    write(folder / "train.csv", rows)
    write(folder / "test.csv", clicks(200, 2))
    text = (folder / "train.csv").read_text()
    write(folder / "nolabel.csv", [[row[0], ["n", "y"][row[1]], *row[2:]] for row in rows], ["id", "took_it", *HEADER[2:]])
    write(folder / "stars.csv", [[row[0], 1 + (row[0] * 7 + row[1]) % 5, *row[2:]] for row in rows])
    write(folder / "spaces.csv", [[*row[:2], *row[4:]] for row in rows], ["id", "label", "user", "city"], delimiter=" ")
    write(folder / "hash.csv", [[*row[:2], *row[4:]] for row in rows], ["id", "label", "user", "city"], delimiter="#")
    (folder / "title.csv").write_text("Our export,,,,,\n" + text)
    (folder / "comment.csv").write_text("# by night.py\n" + text)
    (folder / "mac.csv").write_bytes(text.replace("\n", "\r").encode())
    (folder / "trailing.csv").write_text("".join(line + ("," if i else "") + "\n"
                                                 for i, line in enumerate(text.splitlines())))
    (folder / "array.json").write_text(json.dumps([dict(zip(HEADER, row)) for row in rows], indent=1))
    write(folder / "semicolon.csv", rows, delimiter=";")
    write(folder / "day2.csv", [[*row, "x%d" % (row[0] % 3)] for row in clicks(300, 4)], [*HEADER, "site"])
    (folder / "clicks.json").write_text(json.dumps(model_file()))
    for words in (
            ["data", "convert", "--input", "train.csv", "--out", "data/train", "--dense", "age,price",
             "--dense-transform", "log1p", "--min-count", 2, "--ignore", "id"],
            ["data", "convert", "--input", "test.csv", "--out", "data/test", "--recipe", "data/train"],
            ["train", "clicks.json", "--out", "run"]):
        result = finish(start("cistern", *words, cwd=folder))
        assert result.code == 0, (words, str(result))


FEW = "--set solver.num_epochs=1"
# The mistake; a regular expression whose group is what the message says to type; the steps.
OBEYED = [
    ("trian clicks.json --out a", "did you mean '(.*)'", ["cistern {} clicks.json --out a"]),
    ("train clicks.json --uot a", "did you mean '(.*)'", ["cistern train clicks.json {} a"]),
    ("train clicks.json --out a --set solver.batchsiz=4", "did you mean '(.*)'",
     ["cistern train clicks.json --out a --set solver.{}=4"]),
    ("train clicks.json --out run", "(--resume)", ["cistern train run {}"]),
    ("train run --more test.csv", "(--resume)", ["cistern train run --more test.csv {}"]),
    ("init clicks.json", "(cistern train [^ ;]*clicks.json)", ["{} --out a"]),
    ("plan train.csv", "(cistern train train.csv)", ["{} --out a " + FEW]),
    ("train nolabel.csv --out a", "columns of two values: (took_it)",
     ["cistern train nolabel.csv --label {} --out a " + FEW]),
    ("train stars.csv --out a", "(--positive) TEXT", ["cistern train stars.csv {} 4 {} 5 --out a " + FEW]),
    ("train stars.csv --out a", "(--label-threshold 3), if labels above 3",
     ["cistern train stars.csv {} --out a " + FEW]),
    ("init stars.csv --out a", "(--label-threshold 3), if labels above 3", ["cistern init stars.csv {} --out a"]),
    ("train spaces.csv --out a", "name the delimiter '(space)'",
     ["cistern train spaces.csv --delimiter {} --out a " + FEW]),
    ("train hash.csv --out a", "name it \\((--delimiter)\\)", ["cistern train hash.csv {} '#' --out a " + FEW]),
    ("train title.csv --out a", "\\((tail -n \\+2 title.csv > table.csv)\\)",
     ["{}", "cistern train table.csv --out a " + FEW]),
    ("train comment.csv --out a", "\\((tail -n \\+2 comment.csv > table.csv)\\)",
     ["{}", "cistern train table.csv --out a " + FEW]),
    ("train mac.csv --out a", "(tr .* < mac.csv > table.csv)", ["{}", "cistern train table.csv --out a " + FEW]),
    ("train trailing.csv --out a", "\\((sed .* > table.csv)\\)", ["{}", "cistern train table.csv --out a " + FEW]),
    ("data convert --input semicolon.csv --out a", "(--delimiter=';')",
     ["cistern data convert --input semicolon.csv {} --out a"]),
    ("data convert --input train.csv --out data/train", "(--overwrite)",
     ["cistern data convert --input train.csv --out data/copy {}"]),
    ("data convert --input train.csv --out a --keys raw", "(--keys=hash)",
     ["cistern data convert --input train.csv --out a {}"]),
    ("data convert --input train.csv --out a --recipe data/train --dense age", "leave out (--dense)",
     ["cistern data convert --input train.csv --out a --recipe data/train"]),
    ("predict run --output p.csv", "(--input)", ["cistern predict run {} test.csv --output p.csv"]),
    ("predict run --input semicolon.csv --keep name --output p.csv", "columns are .*(city)",
     ["cistern predict run --input semicolon.csv --keep {} --output p.csv"]),
    ("predict train.csv --input test.csv --output p.csv", "(predict) RUN (?:--input)",
     ["cistern {} run --input test.csv --output p.csv"]),
    ("serve run", "(cistern export serving run)", ["{} --out serving"]),
    ("report train.csv", "(--out folder)", ["cistern report run --out r.html"]),
    ("train run --resume --more day2.csv", "(cistern train .* --add-column 'site' --out NEW)", ["{} " + FEW]),
]


class ObeyedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_obeyed_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        prepare(cls.folder)

    def test_every_fix_leads_to_a_better_state(self):
        for line, mark, steps in OBEYED:
            with self.subTest(line):
                for name in ("a", "NEW", "serving"):
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                result = finish(start("cistern", *line.split(), cwd=self.folder))
                found = re.search(mark, result.err + result.out)
                self.assertIsNotNone(found, str(result))
                for step in steps:
                    command = step.replace("{}", found.group(1))
                    done = subprocess.run(["bash", "-c", f'PATH="{BIN}:$PATH"; {command}'], cwd=self.folder,
                                          capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
