"""cistern train --trace: what workers and servers did when, as a file that Perfetto opens."""

import json
import unittest

from programs import Servers, run
from workers import WorkersTest


class Trace(WorkersTest):

    def spans(self, events, thread):
        names = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
        return [event for event in events if event["ph"] == "X" and event["tid"] == names[thread]]

    def check_spans(self, events):
        """Each thread does one thing at a time; every pass is read, pulled, pushed and committed."""
        for thread in ("training", "next pass", "commit"):
            end = 0
            for span in self.spans(events, thread):
                self.assertGreaterEqual(span["ts"], end - 1, span)  # the file has quarters of a microsecond
                end = span["ts"] + span["dur"]
        committed = [span["args"]["pass"] for span in self.spans(events, "commit") if span["name"] == "commit"]
        self.assertEqual(committed, list(range(1, len(committed) + 1)))
        for name in ("read", "pull"):
            passes = [span["args"]["pass"] for span in self.spans(events, "next pass") if span["name"] == name]
            self.assertEqual(passes[:len(committed)], committed)
        self.assertLessEqual({"read", "train", "commit"},
                             {span["name"] for span in self.spans(events, "training")})
        return committed

    def test_workers_and_servers(self):
        with Servers(2, self.folder, durability="commit") as fleet:
            self.train("run", fleet, 2, "--trace", self.folder / "trace.json", "--run-id", "monday")
            addresses = set(fleet.addresses.split(","))
        self.assertFalse((self.folder / "trace.json").exists())
        for rank in range(2):
            events = json.loads((self.folder / f"trace-{rank}.json").read_text())
            self.check_spans(events)
            groups = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
            self.assertEqual(groups[rank + 1], f"worker {rank} of run monday")
            calls = [event for event in events if event["ph"] == "b"]
            own = {event["id"]: event for event in calls if event["pid"] == rank + 1}
            handled = [event for event in calls if event["pid"] != rank + 1]
            self.assertEqual(len(own), len(handled))
            self.assertEqual({f"server {address}" for address in addresses},
                             {groups[event["pid"]] for event in handled})
            for event in handled:
                self.assertEqual(groups[event["pid"]], "server " + own[event["id"]]["args"]["server"])
                self.assertGreaterEqual(event["ts"], own[event["id"]]["ts"])
            methods = {event["name"] for event in own.values()}
            self.assertLessEqual({"Pull", "Push"}, methods)
            self.assertEqual("CommitPass" in methods, rank == 0)

    def test_one_process(self):
        trace = self.folder / "trace.json"
        trace.write_text("of an older run")
        plain = self.run_ok("cistern", "train", self.config, "--out", self.folder / "plain", "--json").json()
        traced = self.run_ok("cistern", "train", self.config, "--out", self.folder / "run", "--trace", trace,
                             "--json").json()
        self.assertEqual(traced["loss"], plain["loss"])
        committed = self.check_spans(json.loads(trace.read_text()))
        self.assertEqual(len(committed), traced["passes"])

    def test_a_place_that_cannot_be_written_is_refused_before_training(self):
        for place, why in ((self.folder, "is a folder"), (self.folder / "none" / "trace.json", "there is no folder")):
            refused = run("cistern", "train", self.config, "--out", self.folder / "run", "--trace", place)
            self.expect(refused, 2, why, "--trace")
            self.assertFalse((self.folder / "run" / "model").exists())


if __name__ == "__main__":
    unittest.main()
