"""The program of docs/python.md runs, and docs/python_api.md says what the docstrings say."""

import doctest
import importlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cistern_ps as cs

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Documents(unittest.TestCase):
    def test_the_program_of_the_manual_runs(self):
        text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.S)
        self.assertGreater(len(blocks), 5)
        try:
            import torch  # noqa: F401
        except ImportError:
            blocks = [b for b in blocks if "torch" not in b]
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                names = {}
                for block in blocks:
                    with self.subTest(block.splitlines()[0]):
                        exec(compile(block, "docs/python.md", "exec"), names)
            finally:
                os.chdir(before)

    def test_the_quick_start_of_the_readme_runs(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch is missing")
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
        self.assertLessEqual(len(block.splitlines()), 10)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(compile(block, "README.md", "exec"), {})
            finally:
                os.chdir(before)

    def test_the_reference_is_current_and_complete(self):
        check = subprocess.run([sys.executable, str(ROOT / "scripts/python_api.py"), "--check"], stderr=subprocess.PIPE,
                               text=True)
        self.assertEqual((check.returncode, check.stderr), (0, ""))

    def test_examples_in_docstrings_do_what_they_show(self):
        tried = 0
        for name in ("fleet", "table", "metrics", "data", "model"):
            module = importlib.import_module(f"cistern_ps.{name}")
            result = doctest.testmod(module, extraglobs={"cs": cs, "np": np})
            self.assertEqual(result.failed, 0, name)
            tried += result.attempted
        self.assertGreater(tried, 3)


if __name__ == "__main__":
    unittest.main()
