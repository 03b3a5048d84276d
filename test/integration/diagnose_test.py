"""cistern diagnose: the facts about a fault, without secrets."""

import json
import re
import unittest

from programs import ProgramTest, Servers, run


class Diagnose(ProgramTest):

    def test_a_fleet_with_a_server_that_is_down(self):
        log = self.folder / "job.log"
        log.write_text("x" * 99 + "\n" + "line\n" * 300_000 + "connecting to http://me:hunter2@proxy:1/\n"
                       "ssl.key.password=hunter2\nlast\n")
        socket = self.folder / "metrics.sock"
        with Servers(1, self.folder, flags=(f"--metrics_socket={socket}",)) as fleet:
            self.run_ok("cistern", "train", self.config, "--servers", fleet.addresses, "--out", self.folder / "run")
            out = self.folder / "diagnosis"
            words = ["cistern", "diagnose", "--out", out, "--servers", fleet.addresses + ",127.0.0.1:1", "--run",
                     self.folder / "run", "--log", f"{log},{self.folder / 'none.log'}", "--metrics", socket, "--json"]
            made = self.run_ok(*words).json()
            again = run(*words)
        self.expect(again, 2, "exists already", "--out")
        files = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}
        self.assertEqual(set(files), {file["name"] for file in made["files"]})
        self.assertFalse([name for name, text in files.items() if "hunter2" in text])

        self.assertEqual(json.loads(files["version.json"])["version"],
                         self.run_ok("cistern", "version", "--json").json()["version"])
        self.assertIn("checks", json.loads(files["doctor.json"]))
        servers = json.loads(files["servers.json"])["servers"]
        self.assertEqual(len(servers), 2)
        one_metrics, = [text for name, text in files.items() if name.startswith("metrics/")]
        self.assertIn("cistern_server_commits_total", one_metrics)
        run_files = {name.rsplit("/", 1)[1] for name in files if name.startswith("runs/")}
        self.assertEqual(run_files, {"run.json", "model.json", "evaluation.json", "metrics.jsonl"})
        one_log, = [text for name, text in files.items() if name.startswith("logs/")]
        self.assertTrue(one_log.startswith("line\n"))
        self.assertTrue(one_log.endswith("ssl.key.password=[removed]\nlast\n"), one_log[-200:])
        self.assertIn("http://[removed]@proxy:1/", one_log)
        process, = [text for name, text in files.items() if re.match(r"processes/cistern-server-\d+\.txt", name)
                    and str(self.folder) in text]
        for word in ("--rank=0", "VmRSS:", "Max open files", "cistern-server"):
            self.assertIn(word, process)

        left_out = "\n".join(made["left_out"])
        self.assertIn("127.0.0.1:1", left_out)
        self.assertIn("none.log", left_out)
        self.assertEqual(len(made["left_out"]), 2, left_out)
        for line in made["left_out"]:
            self.assertIn(line, files["README.txt"])

    def test_nothing_is_asked_for(self):
        out = self.folder / "diagnosis"
        text = self.run_ok("cistern", "diagnose", "--out", out).out
        self.assertIn("version.json", text)
        self.assertIn(f"tar czf {out}.tar.gz {out}", text)
        self.expect(run("cistern", "diagnose"), 2, "--out")
        self.expect(run("cistern", "diagnose", "--out", "/proc/none/a"), 2, "--out")

    def test_stacks_need_gdb(self):
        with Servers(1, self.folder):
            out = self.folder / "diagnosis"
            made = self.run_ok("cistern", "diagnose", "--out", out, "--stacks", "--json").json()
        stacks = [file["name"] for file in made["files"] if file["name"].endswith("-stacks.txt")]
        refused = [line for line in made["left_out"] if line.startswith("stacks of process")]
        self.assertGreaterEqual(len(stacks) + len(refused), 1, made)
        for name in stacks:
            self.assertIn("Thread ", (out / name).read_text())
        for line in refused:
            self.assertRegex(line, "gdb")
        self.assertFalse((out / "gdb.log").exists())


if __name__ == "__main__":
    unittest.main()
