"""docs/cli.md describes every command of cistern, by the names that its manual pages have."""

import pathlib
import re
import shutil
import tempfile
import unittest

from programs import ROOT, run


class Commands(unittest.TestCase):
    def test_each_is_described(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        result = run("cistern", "--manual", folder)
        self.assertEqual(result.code, 0, result)
        pages = sorted((folder / "man/man1").glob("cistern-*.1"))
        self.assertGreater(len(pages), 40)
        text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
        for page in pages:
            (command,) = re.findall(r"\\fBcistern (.*?)\\fR", page.read_text(encoding="utf-8").replace("\\-", "-"))[:1]
            found = re.search(rf"(^##+ |cistern |`){re.escape(command)}\b", text, re.M)
            self.assertTrue(found, f"cistern {command}: describe it in docs/cli.md")


if __name__ == "__main__":
    unittest.main()
