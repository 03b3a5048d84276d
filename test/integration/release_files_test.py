#!/usr/bin/env python3
"""What each release wrote is read by this version: its state by other numbers of servers, and its saved model.

scripts/keep_release.sh writes test/golden/release_VERSION, once for each release.
"""

import json
import shutil
import unittest

from programs import ROOT, ProgramTest, Servers

KEPT = sorted((ROOT / "test/golden").glob("release_*"))


class ReleaseFiles(ProgramTest):

    def tables(self, servers):
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--digest", "--json").json()
        return {table["name"]: [table["rows"], table["digest"]] for table in status["tables"]}

    def test_there_is_one(self):
        self.assertTrue(KEPT)

    def test_states_are_recovered_by_any_number_of_servers(self):
        for kept in KEPT:
            expected = json.loads((kept / "expected.json").read_text())
            for count in (1, 2, 3):
                with self.subTest(release=kept.name, servers=count):
                    folder = self.folder / f"{kept.name}-{count}"
                    shutil.copytree(kept / "data", folder / "saved")
                    self.run_ok("cistern", "verify", folder / "saved")
                    with Servers(count, folder, durability="commit", flags=["--shard_num=4"]) as servers:
                        self.assertEqual(self.tables(servers), expected["tables"])

    def test_saved_models_load(self):
        for kept in KEPT:
            expected = json.loads((kept / "expected.json").read_text())
            with self.subTest(release=kept.name):
                folder = self.folder / f"{kept.name}-load"
                folder.mkdir()
                shutil.copytree(kept / "data/saved", folder / "saved/saved")
                with Servers(3, folder, flags=["--shard_num=4"]) as servers:
                    self.run_ok("cistern", "load", "--servers", servers.addresses, "--name", "saved")
                    self.assertEqual(self.tables(servers), expected["tables"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
