"""cistern data criteo, compared with an independent computation of its output, and after kills."""

import collections
import math
import random
import shutil
import struct
import unittest

from programs import ProgramTest, run, start, wait_for

COLUMNS, DENSE = 26, 13


def write_days(folder, sizes, seed=4):
    """Writes days whose columns have from 2 to 5000 values, some of them rare; returns the paths."""
    draw = random.Random(seed)
    paths = []
    for number, size in enumerate(sizes):
        path = folder / f"day_{number}"
        with open(path, "w", encoding="utf-8") as file:
            for _ in range(size):
                dense = [str(draw.randint(-3, 10**draw.randint(1, 5))) if draw.random() < 0.8 else ""
                         for _ in range(DENSE)]
                cats = [f"{int(draw.paretovariate(0.7)) * 2654435761 % (2 + 190 * i):08x}"
                        if draw.random() < 0.9 else "" for i in range(COLUMNS)]
                file.write("\t".join([str(int(draw.random() < 0.3)), *dense, *cats]) + "\n")
        paths.append(path)
    return paths


def read_lines(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        yield (float(fields[0]), [int(x or "0") for x in fields[1:1 + DENSE]],
               [int(x or "0", 16) for x in fields[1 + DENSE:]])


class Expected:
    """The expected output: ids by first occurrence over all days, 1 for rare values; scaled dense numbers."""

    def __init__(self, days, dense, min_count, crosses):
        rows = [list(read_lines(day)) for day in days]
        everything = [row for day in rows for row in day]
        features = [[row[2][a] << 32 | row[2][b] for row in everything] for a, b in crosses]
        features += [[row[2][c] for row in everything] for c in range(COLUMNS)]
        self.sizes, ids = [], []
        for values in features:
            times = collections.Counter(values)
            known = {}
            for value in values:
                if times[value] >= min_count:
                    known.setdefault(value, 2 + len(known))
            self.sizes.append(2 + len(known))
            ids.append([known.get(value, 1) for value in values])
        training = [row[1] for day in rows[:-1] for row in day]
        low, high = ([pick(column) for column in zip(*training)] for pick in (min, max))

        def scaled(i, x):
            if dense == "log3":
                return math.log(max(x, -2) + 3)
            if dense == "log1":
                return math.log(max(x, 0) + 1)
            return (min(max(x, low[i]), high[i]) - low[i]) / (high[i] - low[i])
        self.rows = [(row[0], [scaled(i, x) for i, x in enumerate(row[1])],
                      [column[n] for column in ids]) for n, row in enumerate(everything)]
        self.train = len(training)


def read_raw(path, slots):
    row = struct.Struct(f"<{1 + DENSE}f{slots}I")
    return [(one[0], list(one[1:1 + DENSE]), list(one[1 + DENSE:]))
            for one in row.iter_unpack(path.read_bytes())]


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


class Criteo(ProgramTest):

    SAMPLES = 40

    def prepare(self, days, out, *flags):
        return self.run_ok("cistern", "data", "criteo", *days, "--out", out, "--json", *flags).json()

    def check(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertEqual((one[0], one[2]), (other[0], other[2]))
            for x, y in zip(one[1], other[1]):
                self.assertAlmostEqual(x, y, delta=1e-6 * max(1, abs(y)))

    def test_rows_match_an_independent_computation(self):
        days = write_days(self.folder, [1500, 900, 700])
        for dense, min_count, crosses in (("log3", 1, []), ("log1", 3, [(0, 5)]),
                                          ("minmax", 6, [(3, 4), (4, 25)])):
            out = self.folder / dense
            names = ",".join(f"C{a + 1}_C{b + 1}" for a, b in crosses)
            made = self.prepare(days, out, "--format", "raw", "--no-shuffle", "--dense", dense,
                                "--min-count", min_count, *(["--cross", names] if names else []))
            expected = Expected(days, dense, min_count, crosses)
            self.assertEqual(made["slot_size_array"], expected.sizes)
            self.assertEqual(made["wide_slots"], len(crosses))
            slots = COLUMNS + len(crosses)
            self.check(read_raw(out / "train" / "data.bin", slots), expected.rows[:expected.train])
            self.check(read_raw(out / "test" / "data.bin", slots), expected.rows[expected.train:])

    def test_shuffling_keeps_the_same_rows(self):
        days = write_days(self.folder, [1500, 900, 700])
        plain, mixed = self.folder / "plain", self.folder / "mixed"
        self.prepare(days, plain, "--format", "raw", "--no-shuffle")
        self.prepare(days, mixed, "--format", "raw", "--threads", 3)
        rows = [[row for row in read_raw(out / "train" / "data.bin", COLUMNS)]
                for out in (plain, mixed)]
        self.assertNotEqual(rows[0], rows[1])
        self.assertEqual(sorted(rows[0]), sorted(rows[1]))
        self.assertEqual((plain / "test" / "data.bin").read_bytes(),
                         (mixed / "test" / "data.bin").read_bytes())

    def test_killed_run_can_be_repeated_and_leaves_no_partial_output(self):
        days = write_days(self.folder, [30000, 20000, 5000])
        whole, out = self.folder / "whole", self.folder / "out"
        work = self.folder / "out.partial"
        flags = ["--cross", "C1_C2", "--min-count", 2]
        self.prepare(days, whole, *flags)
        kills = 0
        for sign in ("values-0", "size-3", "dealt-0", "set"):
            process = start("cistern", "data", "criteo", *days, "--out", out, *flags)
            made = self.folder / "out.partial-set" if sign == "set" else work / sign
            wait_for(lambda: made.exists() or process.poll() is not None, sign)
            process.kill()
            process.communicate()
            if out.exists():  # it finished before the kill
                shutil.rmtree(out)
                continue
            kills += 1
            self.assertTrue((work / "plan").exists())
        self.assertGreater(kills, 0)
        left = work.exists()
        self.assertEqual(self.prepare(days, out, *flags)["went_on"], left)
        self.assertEqual(files_of(out), files_of(whole))
        self.assertFalse(work.exists() or (self.folder / "out.partial-set").exists())

    def test_wide_and_deep_model_reads_the_slots(self):
        days = write_days(self.folder, [400, 200])
        made = self.prepare(days, self.folder / "norm", "--cross", "C1_C2,C3_C4")
        seen = self.run_ok("cistern", "data", "inspect", made["source"], "--json").json()
        self.assertEqual((seen["samples"], len(seen["slots"])), (400, 27))
        self.assertEqual(made["slots"], 27)
        self.expect(run("cistern", "data", "criteo", *days, "--out", self.folder / "bad", "--cross",
                        "C1_C27"), 2, "C1_C27", "C1 to C26")
        self.assertFalse((self.folder / "bad").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
