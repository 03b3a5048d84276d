"""The life cycle of a run and a fleet: reports, status, tables, interruption, a clean stop."""

import json
import signal
import unittest

from programs import ProgramTest, Servers, finish, run, start, wait_for


class Lifecycle(ProgramTest):

    def train(self, servers, name="run", *flags):
        return self.run_ok("cistern", "train", self.config, "--out", self.folder / name,
                           "--servers", servers.addresses, "--json", *flags).json()

    def status(self, servers, *flags):
        return self.run_ok("cistern", "status", "--servers", servers.addresses, "--json",
                           *flags).json()

    def test_train_reports_what_it_did(self):
        result = self.run_ok("cistern", "train", self.config, "--out", self.folder / "run",
                             "--json")
        summary = result.json()
        self.assertEqual(summary["samples"], 2 * self.SAMPLES)
        self.assertEqual(summary["iterations"], 2 * self.SAMPLES // 100)
        self.assertGreater(summary["auc"], 0.7)
        self.assertIn("event=train iter=20 ", result.err)
        lines = (self.folder / "run" / "metrics.jsonl").read_text().splitlines()
        events = [json.loads(line)["event"] for line in lines]
        self.assertEqual(events[-1], "final")
        self.assertIn("eval", events)
        evaluated = self.run_ok("cistern", "eval", self.config, "--model", self.folder / "run",
                                "--json").json()
        self.assertEqual(evaluated["samples"], self.SAMPLES // 4)
        self.assertAlmostEqual(evaluated["auc"], summary["auc"], places=9)

    def test_existing_model_is_not_overwritten_by_default(self):
        words = ("cistern", "train", self.config, "--out", self.folder / "run", "--durability",
                 "none")
        self.run_ok(*words)
        self.expect(run(*words), 2, "already holds a trained model", "--overwrite")
        self.run_ok(*words, "--overwrite")

    def test_rows_do_not_depend_on_the_number_of_servers(self):
        tables = []
        for count in (1, 3):
            with Servers(count, self.folder) as servers:
                self.train(servers, f"run-{count}")
                tables.append(self.status(servers, "--digest")["tables"])
        for one, three in zip(*tables):
            self.assertEqual(one["digest"], three["digest"])
            self.assertEqual(one["rows"], three["rows"])

    def test_status_shows_each_server(self):
        with Servers(2, self.folder) as servers:
            empty = self.run_ok("cistern", "status", "--servers", servers.addresses)
            self.assertIn("no tables", empty.out)
            self.train(servers)
            text = self.run_ok("cistern", "status", "--servers", servers.addresses).out
            for server in servers.all:
                self.assertIn(server.address, text)
            self.assertIn("deep", text)

    def test_table_shows_a_row(self):
        with Servers(2, self.folder) as servers:
            self.train(servers)
            flags = ("--servers", servers.addresses)
            listed = self.run_ok("cistern", "table", "ls", *flags, "--json").json()["tables"]
            deep = next(table for table in listed if table["name"] == "deep")
            self.assertEqual(deep["rows"], 200)
            row = self.run_ok("cistern", "table", "show", "deep", "0x2a", *flags, "--json").json()
            self.assertEqual((row["key"], row["found"]), (42, True))
            self.assertEqual(row["shard"], 42 % 64)
            self.assertIn("w[0]", row["fields"])
            self.expect(run("cistern", "table", "show", "deep", 123456, *flags), 1, "123456")
            self.expect(run("cistern", "table", "show", "depe", 1, *flags), 1, "did you mean 'deep'")
            self.expect(run("cistern", "table", "show", "deep", "x1", *flags), 2, "x1")
            self.expect(run("cistern", "table", "show", "deep", 2**63 - 1, *flags), 2, "reserved")

    def test_interrupted_training_keeps_its_state(self):
        self.write_model(lambda content: content["solver"].update(num_epochs=100000))
        metrics = self.folder / "run" / "metrics.jsonl"
        worker = start("cistern", "train", self.config, "--out", self.folder / "run", "--set",
                       "cistern.pass_memory_mb=1")
        wait_for(lambda: metrics.exists() and '"event":"train"' in metrics.read_text(), "a step")
        worker.send_signal(signal.SIGINT)
        self.expect(finish(worker), 130, "interrupted")
        self.run_ok("cistern", "eval", self.config, "--model", self.folder / "run")

    def test_server_stops_cleanly(self):
        servers = Servers(1, self.folder)
        self.assertEqual(servers.all[0].stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
