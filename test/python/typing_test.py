"""mypy --strict on the package and the examples, and stubtest: the stub of the C++ module is what the module has."""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NANOBIND = re.compile("is not a function$|metaclass differs$|is a disjoint base at runtime|__init__ is inconsistent"
                      "|stub is a staticmethod but runtime is not$")
HAS_MYPY = importlib.util.find_spec("mypy") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAS_MYPY, "mypy is missing")
class Typing(unittest.TestCase):
    def run_python(self, *words):
        # In an empty folder: mypy takes files there, such as a user's os/, for modules.
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True,
                                  timeout=300, cwd=folder)

    @unittest.skipUnless(HAS_TORCH, "torch, which the examples import, is missing")
    def test_the_examples_are_strictly_typed(self):
        """As a user runs it, against the installed package."""
        done = self.run_python("mypy", "--strict", *sorted((ROOT / "examples/python").glob("*.py")))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_stub_is_what_the_module_has(self):
        """But for the types of nanobind's own functions and classes, which stubtest does not know."""
        done = self.run_python("mypy.stubtest", "--concise", "cistern_ps._native")
        lines = [line for line in done.stdout.splitlines() if not NANOBIND.search(line)]
        self.assertEqual((lines, done.stderr), ([], ""))


if __name__ == "__main__":
    unittest.main()
