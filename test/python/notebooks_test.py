"""Every notebook of examples/python runs from its first cell to its last; its code is checked without Jupyter, too."""

import ast
import importlib.util
import json
import os
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples/python").glob("*.ipynb"))
NEEDS = ("nbclient", "ipykernel", "torch", "pandas", "matplotlib")
MISSING = [name for name in NEEDS if importlib.util.find_spec(name) is None]


def cells(path, kind):
    return ["".join(c["source"]) for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == kind]


class Notebooks(unittest.TestCase):
    def test_there_is_one_and_its_code_is_python(self):
        self.assertGreater(len(NOTEBOOKS), 0)
        for path in NOTEBOOKS:
            for source in cells(path, "code"):
                ast.parse(source, str(path))

    def test_each_has_been_run_and_shows_no_error_and_no_path_of_a_machine(self):
        for path in NOTEBOOKS:
            text = path.read_text(encoding="utf-8")
            outputs = [o for c in json.loads(text)["cells"] for o in c.get("outputs", [])]
            self.assertTrue(any("image/png" in o.get("data", {}) for o in outputs), "no picture: run the notebook")
            self.assertFalse([o for o in outputs if o["output_type"] == "error"])
            self.assertNotRegex(text, "/home/|/root/|/work/")

    def test_each_runs(self):
        """With Jupyter's client if it is installed; else as one program, if PyTorch and pandas are."""
        wanted = [name for name in ("torch", "pandas") if importlib.util.find_spec(name) is None]
        if wanted:
            self.skipTest(f"{', '.join(wanted)} missing")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        for path in NOTEBOOKS:
            with self.subTest(path.name):
                if not MISSING:
                    import nbclient
                    import nbformat

                    nbclient.NotebookClient(nbformat.read(path, 4), timeout=300, kernel_name="python3").execute()
                    continue
                print(f"{path.name} runs as a program: without {', '.join(MISSING)}")
                pictures = ("plot", "figure", "axes", "right.")
                names = {}
                for source in cells(path, "code"):
                    if "matplotlib" in MISSING and any(word in source for word in pictures):
                        continue
                    exec(compile(source, str(path), "exec"), names)


if __name__ == "__main__":
    unittest.main()
