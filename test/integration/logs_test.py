"""Logs as JSON: each line on standard error is an object, in UTC, with the id of the run."""

import datetime
import json
import unittest

from programs import ProgramTest, Servers, run


class LogsTest(ProgramTest):
    def lines(self, text):
        self.assertNotEqual(text, "")
        lines = [json.loads(line) for line in text.splitlines()]
        now = datetime.datetime.now(datetime.timezone.utc)
        for line in lines:
            self.assertLess(abs(now - datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00"))),
                            datetime.timedelta(minutes=10))
            self.assertIn(line["level"], ("info", "warning", "error"))
        return lines

    def test_a_run_has_one_id_in_all_logs(self):
        with Servers(1, self.folder, flags=("--log_format=json",)) as servers:
            out = self.folder / "run"
            result = self.run_ok("cistern", "train", self.config, "--servers", servers.addresses, "--out", out,
                                 "--log-format", "json")
            run_id = json.loads((out / "run.json").read_text())["run_id"]
            self.assertRegex(run_id, "^[0-9a-f]{16}$")
            lines = self.lines(result.err)
            events = [line for line in lines if line["message"].startswith("event=")]
            self.assertTrue(any(line["message"].startswith("event=pass ") for line in events))
            self.assertEqual({line.get("run") for line in events}, {run_id})
            self.assertEqual({line.get("run") for line in lines}, {run_id, None})  # None: notes before the run
        server = self.lines((self.folder / "server-0-of-1.log").read_text())
        self.assertEqual({line["process"] for line in server}, {"server-0"})
        self.assertTrue(any(f"run {run_id}" in line["message"] for line in server), server)

    def test_commits_name_their_run(self):
        out = self.folder / "run"
        self.run_ok("cistern", "train", self.config, "--out", out, "--run-id", "monday")
        commits = self.run_ok("cistern", "ckpt", "ls", out, "--json").json()["commits"]
        self.assertEqual({commit["run"] for commit in commits}, {"monday"})

    def test_a_resumed_run_keeps_its_id(self):
        out = self.folder / "run"
        self.run_ok("cistern", "train", self.config, "--out", out)
        first = json.loads((out / "run.json").read_text())["run_id"]
        self.run_ok("cistern", "train", self.config, "--out", out, "--resume")
        self.assertEqual(json.loads((out / "run.json").read_text())["run_id"], first)
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "other", "--run-id", "nightly-1")
        self.assertEqual(json.loads((self.folder / "other/run.json").read_text())["run_id"], "nightly-1")

    def test_errors_are_lines_too(self):
        result = run("cistern", "train", "no.json", "--out", self.folder / "run", "--log-format", "json")
        self.assertEqual(result.code, 2)
        self.assertEqual(self.lines(result.err)[-1]["level"], "error")
        self.assertIn("no.json", self.lines(result.err)[-1]["message"])
        result = run("cistern-server", "--rank=5", "--server_num=2", "--port=0", "--log_format=json")
        self.assertEqual(result.code, 2)
        self.assertIn("rank 5", self.lines(result.err)[-1]["message"])
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "run", "--run-id", "a/b"), 2, "--run-id")


if __name__ == "__main__":
    unittest.main()
