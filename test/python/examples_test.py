"""The programs of examples/python, on small data in their formats."""

import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401
    HAS_TORCH = True
except ImportError:
    HAS_TORCH = False

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Examples(unittest.TestCase):
    def run_example(self, *words):
        done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=500,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_every_framework_has_the_same_auc(self):
        out = self.run_example(ROOT / "examples/python/any_framework.py")
        scores = dict(re.findall(r"(\w+): AUC ([0-9.]+)", out))
        print(f"any_framework: {', '.join(scores)}")
        self.assertIn("numpy", scores)
        for auc in scores.values():
            self.assertAlmostEqual(float(auc), float(scores["numpy"]), delta=0.001)
        self.assertGreater(float(scores["numpy"]), 0.8)

    @unittest.skipUnless(HAS_TORCH, "torch is missing")
    def test_deepfm_learns_and_a_second_call_knows_that_it_is_done(self):
        draw = random.Random(5)
        fields = ["user", "item", "daytime", "weekday", "isweekend", "homework", "cost", "weather", "country", "city"]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, count in (("train", 20000), ("valid", 2000), ("test", 2000)):
                with open(folder / f"{name}.csv", "w", encoding="utf-8") as file:
                    file.write(",".join(["label", *fields]) + "\n")
                    for _ in range(count):
                        keys = [10 * f + draw.randrange(10) for f in range(10)]
                        label = int(draw.random() < (0.9 if (keys[0] + keys[1]) % 2 else 0.1))
                        file.write(",".join(map(str, [label, *keys])) + "\n")
            command = [ROOT / "examples/python/deepfm_frappe.py", folder, "--out", folder / "out", "--seeds", "1",
                       "--epochs", "12"]
            first = self.run_example(*command)
            auc = float(re.search(r"mean: test AUC ([0-9.]+)", first)[1])
            self.assertGreater(auc, 0.8)
            again = self.run_example(*command)
            self.assertEqual(re.search("mean: .*", again)[0], re.search("mean: .*", first)[0])

    @unittest.skipUnless(HAS_TORCH, "torch is missing")
    def test_dlrm_learns_from_numbers_and_fields(self):
        draw = random.Random(3)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            columns = ["id", "label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
            with open(folder / "criteo_first80k.csv", "w", encoding="utf-8") as file:
                file.write(",".join(columns) + "\n")
                for row in range(8000):
                    numbers = [draw.randrange(100) for _ in range(13)]
                    fields = [draw.randrange(8) for _ in range(26)]
                    odds = 1 / (1 + math.exp(-(numbers[0] - 50) / 10 - (2 if fields[0] < 4 else -2)))
                    words = ["" if draw.random() < 0.05 else f"{f:x}" for f in fields[1:]]
                    line = [row, int(draw.random() < odds), *numbers, f"{fields[0]:x}", *words]
                    file.write(",".join(map(str, line)) + "\n")
            out = self.run_example(ROOT / "examples/python/dlrm_criteo.py", folder, "--out", folder / "out", "--seeds",
                                   "1", "--trained", "7000", "--epochs", "6")
            self.assertGreater(float(re.search(r"mean: test AUC ([0-9.]+)", out)[1]), 0.8)

    @unittest.skipUnless(HAS_TORCH, "torch is missing")
    def test_sequences_learn_what_follows_what(self):
        """Visitors read article a + 1 after article a."""
        draw = random.Random(7)
        columns = ["hour", "user_id", "session_id", "click_article_id", "click_environment", "click_deviceGroup",
                   "click_os", "click_country", "click_region", "click_referrer_type"]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            last = {}
            for day in range(3):
                with open(folder / f"clicks_day{day:02}.csv", "w", encoding="utf-8") as file:
                    file.write(",".join(columns) + "\n")
                    for hour in range(24 * day, 24 * day + 24):
                        for _ in range(100):
                            user = draw.randrange(60)
                            last[user] = (last.get(user, draw.randrange(30)) + 1) % 30
                            file.write(f"{hour},{user},{hour * 100 + user},{last[user]},1,1,1,1,1,1\n")
            for name in ("pooled", "din"):
                out = self.run_example(ROOT / "examples/python/sequence_globo.py", folder, "--out", folder / "out",
                                       "--model", name, "--epochs", "60")
                self.assertGreater(float(re.search(rf"{name}: AUC ([0-9.]+)", out)[1]), 0.75)


if __name__ == "__main__":
    unittest.main()
