"""cistern demo: its seven steps, the files that it leaves, and that it stops all its processes."""

import pathlib
import signal
import tempfile
import unittest

from programs import finish, run, start, wait_for


def servers_below(folder):
    """Ids of cistern-server processes whose data_dir is below `folder`."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # not a process, or it has ended
        if "cistern-server" in words and str(folder) in words:
            found.append(process.name)
    return found


class Demo(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cistern_test_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "demo"

    def test_trains_saves_loads_and_compares(self):
        result = run("cistern", "demo", "--dir", self.folder, "--samples", 8000, "--json")
        self.assertEqual(result.code, 0, str(result))
        report = result.json()
        self.assertEqual([step["name"] for step in report["steps"]],
                         ["data", "servers", "train", "evaluate", "save", "load", "compare"])
        self.assertTrue(report["identical"])
        self.assertEqual(report["predictions"], 2000)
        self.assertGreater(report["auc"], 0.65)
        self.assertLess(report["auc"], report["best_auc"] + 0.02)
        self.assertEqual(servers_below(self.folder), [])
        for name in ("deepfm.json", "run/metrics.jsonl", "saved/demo", "logs/worker.log"):
            self.assertTrue((self.folder / name).exists(), name)
        again = run("cistern", "eval", self.folder / "deepfm.json", "--model", self.folder / "run",
                    "--json")
        self.assertEqual(again.code, 0, str(again))
        self.assertAlmostEqual(again.json()["auc"], report["auc"], places=12)

    def test_refuses_a_folder_that_is_not_empty(self):
        self.folder.mkdir()
        (self.folder / "mine").touch()
        result = run("cistern", "demo", "--dir", self.folder)
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("is not empty", result.err)

    def test_interrupt_stops_all_processes(self):
        demo = start("cistern", "demo", "--dir", self.folder, "--samples", 400000)
        wait_for(lambda: len(servers_below(self.folder)) == 2, "two servers")
        demo.send_signal(signal.SIGINT)
        result = finish(demo)
        self.assertEqual(result.code, 130, str(result))
        self.assertEqual(servers_below(self.folder), [])

    def test_interrupt_stops_the_writing_of_data(self):
        self.assertEqual(run("cistern", "demo", "--samples", 10**9 + 1).code, 2)
        demo = start("cistern", "demo", "--dir", self.folder, "--samples", 10**9)
        wait_for(lambda: any(path.stat().st_size > 0 for path in self.folder.rglob("*.norm")), "data")
        demo.send_signal(signal.SIGINT)
        result = finish(demo)
        self.assertEqual(result.code, 130, str(result))


if __name__ == "__main__":
    unittest.main(verbosity=2)
