"""mypy --strict on the package and the examples, and stubtest: the stub of the C++ module is what the module has."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HAS_MYPY = importlib.util.find_spec("mypy") is not None


@unittest.skipUnless(HAS_MYPY, "mypy is missing")
class Typing(unittest.TestCase):
    def run_python(self, *words):
        done = subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True, timeout=300,
                              cwd=tempfile.gettempdir())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_examples_are_strictly_typed(self):
        """As a user runs it, against the installed package."""
        self.run_python("mypy", "--strict", *sorted((ROOT / "examples/python").glob("*.py")))

    def test_the_stub_is_what_the_module_has(self):
        self.run_python("mypy.stubtest", "cistern_ps._native")


if __name__ == "__main__":
    unittest.main()
