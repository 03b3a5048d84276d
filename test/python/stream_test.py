"""Training on data that never ends, from Python: the bits of `cistern train --stream`, stopped, resumed and published."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cistern_ps as cs
from program import run_cistern
from jobs_test import click_log, digests_of, small_model

HERE = pathlib.Path(__file__).parent
# Slices of 250 rows, and of nothing less while more may come: they do not depend on time.
SLICES = {"cistern.stream.samples": 250, "cistern.stream.seconds": 1e6}


def rows(seed, count=250):
    """Rows of the layout of click_log, without its header."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 40, count), rng.integers(40, 60, count)
    return "".join(f"{int((x + y) % 3 == 0)},{x},{y}\n" for x, y in zip(a, b))


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.shared = pathlib.Path(folder.name)
        cls.model = small_model(click_log(cls.shared))
        cs.train(cls.model, out=cls.shared / "begun")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.clicks = self.folder / "clicks"
        self.clicks.mkdir()

    def begun(self, name):
        """A run that has trained its first table."""
        return shutil.copytree(self.shared / "begun", self.folder / name)

    def add_files(self, count, first=0):
        for i in range(first, first + count):
            (self.clicks / f"{i:03}.csv").write_text("label,a,b\n" + rows(seed=i))

    def program(self, run):
        """The digests of `cistern train RUN --stream`."""
        words = ["train", str(run), "--stream", str(self.clicks), "--once"]
        run_cistern(*words, *[word for k, v in SLICES.items() for word in ("--set", f"{k}={v}")])
        return {t["name"]: t["digest"] for t in cs.commits(run / "state")[-1]["tables"]}

    def test_trains_the_bits_of_the_program(self):
        self.add_files(4)
        expected = self.program(self.begun("program"))
        before = digests_of(cs.train(self.model, out=self.folder / "again"))
        run = cs.train(self.begun("python"), stream=self.clicks, once=True, set=SLICES)
        self.assertEqual(digests_of(run), expected)
        self.assertNotEqual(expected, before)
        self.assertEqual(run.samples, 1000)
        passes = [line for line in run.events if line["event"] == "pass" and "behind_messages" in line]
        self.assertEqual(len(passes), 4)
        self.assertEqual(run.out, self.folder / "python")
        self.assertGreater(cs.evaluate(run)["auc"], 0.6)

    def test_a_run_continues_where_it_was(self):
        self.add_files(2)
        run = cs.train(self.model, out=self.folder / "run")
        run = cs.train(run, stream=os.fspath(self.clicks), once=True, set=SLICES)
        self.assertEqual(run.samples, 500)
        self.add_files(2, first=2)
        # With the model in place of the run, too.
        again = cs.train(self.model, out=self.folder / "run", stream=self.clicks, once=True, set=SLICES)
        self.assertEqual(again.samples, 1000)
        nothing = cs.train(run, stream=self.clicks, once=True, set=SLICES)
        self.assertEqual(nothing.samples, 1000)
        self.assertEqual(digests_of(nothing), self.program(self.begun("program")))

    def stop(self, run, handler, which):
        """Trains on the stream in another process, and stops it after a pass."""
        program = f"""
import signal, sys
sys.path.insert(0, {str(HERE)!r})
import cistern_ps as cs
{handler}
try:
    cs.train({str(run)!r}, stream={str(self.clicks)!r}, set={SLICES!r}, progress=lambda line: print(line, flush=True))
except KeyboardInterrupt:
    sys.exit(7)
"""
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if line.startswith("event=pass"):
                break
        process.send_signal(which)
        process.stdout.read()
        return process.wait()

    def test_stops_with_its_state_committed_and_continues_exactly(self):
        self.add_files(8)
        expected = self.program(self.begun("program"))
        for name, handler, which, code in (
                ("Ctrl-C", "", signal.SIGINT, 7),
                ("SIGTERM", "signal.signal(signal.SIGTERM, signal.default_int_handler)", signal.SIGTERM, 7),
                ("kill", "", signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(name):
                run = self.begun(name)
                commits = cs.commits(run / "state")[-1]["commit"]
                self.assertEqual(self.stop(run, handler, which), code)
                self.assertGreater(cs.commits(run / "state")[-1]["commit"], commits)
                done = cs.train(run, stream=self.clicks, once=True, set=SLICES)
                self.assertEqual(digests_of(done), expected)

    def test_what_progress_raises_stops_it(self):
        """The stream is empty by then: nothing but the stop ends it."""
        self.add_files(1)
        run = self.begun("run")

        def progress(line):
            if line.startswith("event=pass"):
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            cs.train(run, stream=self.clicks, set=SLICES, progress=progress)
        self.assertEqual(cs.train(run, stream=self.clicks, once=True, set=SLICES).samples, 250)

    def test_publishes_its_newest_commit(self):
        self.add_files(3)
        lines = []
        run = cs.train(self.begun("run"), stream=self.clicks, once=True, publish=self.folder / "serving", set=SLICES,
                       progress=lines.append)
        newest = cs.commits(run.state)[-1]["commit"]
        self.assertEqual(run.published["commit"], newest)
        self.assertGreaterEqual(run.published["versions"], 1)
        self.assertTrue(any(line.startswith(f"event=published commit={newest} ") for line in lines), lines)
        served = cs.serve.open(self.folder / "serving", threads=1)
        self.assertEqual(served.commit, newest)
        data = cs.data.norm(self.shared / "data" / "file_list.txt", slots=2, batch=300)
        np.testing.assert_array_equal(np.concatenate([np.asarray(served.predict(batch)) for batch in data]),
                                      cs.predict(run, data=self.shared / "data" / "file_list.txt")[1])
        # Without a stream, too.
        run = cs.train(self.model, out=self.folder / "files", publish=self.folder / "of_files")
        self.assertEqual(run.published["commit"], cs.commits(run.state)[-1]["commit"])

    def test_a_fleet_of_this_process_trains_the_same_bits(self):
        self.add_files(3)
        expected = self.program(self.begun("program"))
        with cs.local(self.folder / "fleet", servers=2) as fleet:
            cs.train(self.model, fleet=fleet)
            run = cs.train(self.model, fleet=fleet, stream=self.clicks, once=True, resume=True, set=SLICES)
            self.assertEqual(run.samples, 750)
            self.assertEqual({k: f"{v:016x}" for k, v in fleet.digests().items()}, expected)
            with self.assertRaisesRegex(cs.UsageError, "publish="):
                cs.train(self.model, fleet=fleet, publish=self.folder / "serving")

    def test_reads_topics_of_kafka(self):
        mock = os.environ.get("CISTERN_MOCK_KAFKA", "")
        if not os.path.exists(mock):
            self.skipTest("this build has no broker for tests")
        broker = subprocess.Popen([mock, "clicks:1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(broker.communicate)
        self.addCleanup(broker.kill)
        source = f"kafka://{broker.stdout.readline().strip().removeprefix('brokers=')}/clicks"
        self.add_files(4)
        expected = self.program(self.begun("program"))
        for i in range(4):
            message = self.folder / "message"
            message.write_text(rows(seed=i))
            broker.stdin.write(f"clicks 0 {message}\n")
            broker.stdin.flush()
            self.assertEqual(broker.stdout.readline(), "ok\n")
        run = cs.train(self.begun("run"), stream=source, once=True, set=SLICES)
        self.assertEqual(run.samples, 1000)
        self.assertEqual(digests_of(run), expected)

    def test_errors_have_a_class_and_name_keywords(self):
        run = self.begun("run")
        other = self.folder / "other"
        other.mkdir()
        (other / "file").write_text("x")
        for kind, message, options in (
                (cs.UsageError, r"has none \(once=, stream=\)", {"once": True}),
                (cs.UsageError, "is not a folder", {"stream": self.folder / "nowhere"}),
                (cs.UsageError, "mqtt://broker/topic", {"stream": "mqtt://broker/topic"}),
                (cs.UsageError, r"keeps none \(publish=, servers=\)", {"publish": "serving", "servers": "127.0.0.1:1"}),
                (cs.UsageError, r"is not a serving folder .* \(publish=\)", {"publish": other}),
                (TypeError, "stream: expected a path; got int", {"stream": 3})):
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                cs.train(run, **options)
        with self.assertRaisesRegex(cs.UsageError, r"is a folder, .* \(config=\)"):
            cs.train(other, stream=self.clicks)
        (self.clicks / "bad.csv").write_text("label,a,b\n1,2,3\n7,2,3\n")
        with self.assertRaisesRegex(cs.DataError, "bad.csv: row 1: label 0 is 7"):
            cs.train(run, stream=self.clicks, once=True)
        skipped = cs.train(run, stream=self.clicks, once=True, set={"cistern.on_bad_data": "skip"})
        self.assertEqual((skipped.samples, sum(skipped.skipped_data.values())), (1, 1))


if __name__ == "__main__":
    unittest.main()
