"""Reads the figures of real servers and trainings with Prometheus' own parser, and compares their names with
docs/monitoring.md.

Uses the installed prometheus_client, or the one that scripts/test.sh installs with pip into build/prometheus_client.
Exit code 77 (skipped) if there is neither.
"""

import http.client
import os
import re
import socket
import stat
import subprocess
import sys
import unittest
import urllib.request

from programs import ROOT, ProgramTest, Samples, Servers, finish, start, wait_for

sys.path.append(str(ROOT / "build" / "prometheus_client"))
try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TYPES = {"counter", "gauge", "histogram"}


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def get(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as reply:
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return reply.read().decode()


class Page:
    """A page of figures. Parsing it checks that it is well formed and that no sample is there twice."""

    def __init__(self, text):
        self.text, self.types, self.samples = text, {}, {}
        for family in text_string_to_metric_families(text):
            name = family.name + ("_total" if family.type == "counter" else "")
            assert name not in self.types, f"family {name} twice"
            assert family.type in TYPES and family.documentation, family
            self.types[name] = family.type
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in self.samples, f"sample {key} twice"
                self.samples[key] = sample.value

    def __getitem__(self, name):
        """The sum over all labels."""
        found = [value for (sample, _), value in self.samples.items() if sample == name]
        assert found, f"no sample {name} in\n{self.text}"
        return sum(found)

    def of(self, name, **labels):
        return self.samples[name, tuple(sorted(labels.items()))]

    def labels(self, name):
        """The names of the labels of a family."""
        found = [{label for label, _ in labels if label != "le"} for (sample, labels) in self.samples
                 if re.fullmatch(re.escape(name) + "(_bucket|_sum|_count)?", sample)]
        return set.union(set(), *found)


def documented(prefix):
    """{name: (type, labels)} of the names with this prefix in docs/monitoring.md."""
    rows = re.findall(r"^\| `([a-z_]+)(?:\{([a-z_,]+)\})?` \| (\w+) \| [^|]+ \|",
                      (ROOT / "docs/monitoring.md").read_text(encoding="utf-8"), re.M)
    return {name: (kind, set(labels.split(",")) - {""}) for name, labels, kind in rows
            if name.startswith(prefix)}


def metrics_address(line):
    return re.search(r"metrics=http://(\S+)/metrics", line).group(1)


class MonitoringTest(ProgramTest):
    def fleet(self, count, durability="commit"):
        servers = Servers(count, self.folder, flags=("--metrics_port=0",), durability=durability)
        self.addCleanup(servers.__exit__)
        return servers

    def check_documented(self, page, prefix, absent=()):
        names = documented(prefix)
        self.assertGreater(len(names), 4)
        shown = {name: kind for name, kind in page.types.items() if name.startswith(prefix)}
        self.assertEqual({name: kind for name, (kind, _) in names.items() if name not in absent}, shown)
        for name in shown:
            if page.labels(name):
                self.assertEqual(names[name][1], page.labels(name), name)

    def test_a_servers_figures_are_those_that_the_manual_lists(self):
        servers = self.fleet(2)
        self.write_model()
        before = [Page(get(metrics_address(server.ready))) for server in servers.all]
        self.run_ok("cistern", "train", self.config, "--servers", servers.addresses, "--out", self.folder / "run")
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--json").json()
        pages = [Page(get(metrics_address(server.ready))) for server in servers.all]
        for rank, page in enumerate(pages):
            # No program copies this state.
            self.check_documented(page, "cistern_server_", absent=("cistern_server_copied_commit",))
            self.check_documented(page, "process_")
            self.assertEqual(page.of("cistern_server_info", rank=str(rank), servers="2", cluster="cistern",
                                     version=self.version()), 1)
            self.assertEqual(page["cistern_server_committed_pass"], page["cistern_server_commits_total"])
            self.assertGreater(page["cistern_server_commit"], 0)
            self.assertEqual(page["cistern_server_durable"], 1)
            self.assertEqual(page["cistern_server_staged_bytes"], 0)
            self.assertGreaterEqual(page["cistern_server_last_commit_time_seconds"],
                                    page["process_start_time_seconds"])
            self.assertGreater(page["cistern_server_pushed_keys_total"], 0)
            self.assertGreaterEqual(page.of("cistern_server_call_seconds_count", method="CommitPass"),
                                    page["cistern_server_commits_total"])
            self.assertGreater(page["process_resident_memory_bytes"], 1 << 20)
        for page in before:
            self.assertEqual(page["cistern_server_commits_total"], 0)
        # The rows of all servers are those that `status` counts.
        rows = sum(page["cistern_server_rows"] for page in pages)
        self.assertEqual(rows, sum(table["rows"] for server in status["servers"] for table in server["tables"]))
        self.assertGreater(rows, 0)

    def test_refused_calls_count_by_their_code(self):
        servers = self.fleet(1, durability="none")
        for refusals in (1, 2):  # there is no digest to compare with
            self.expect(finish(start("cistern", "scrub", "--servers", servers.addresses)), 1)
            page = Page(get(metrics_address(servers.all[0].ready)))
            self.assertEqual(page.of("cistern_server_call_errors_total", code="FAILED_PRECONDITION"), refusals)
            self.assertEqual(page["cistern_server_call_errors_total"], refusals)
            self.assertEqual(page.of("cistern_server_call_seconds_count", method="Scrub"), refusals)

    def test_a_trainings_figures_are_those_that_the_manual_lists(self):
        path = self.folder / "train.sock"

        def change(content):
            content["solver"].update(max_iter=1000000, num_epochs=0)
            content["solver"]["eval_metrics"] = ["AUC", "NE"]

        self.write_model(change)
        training = start("cistern", "train", self.config, "--out", self.folder / "run", "--metrics-socket", path)
        try:
            def answers():
                try:
                    UnixConnection(path).connect()
                except OSError:  # the socket is there before it listens
                    return False
                return True

            wait_for(answers, "the socket")

            def read():
                connection = UnixConnection(path)
                connection.request("GET", "/metrics")
                return Page(connection.getresponse().read().decode())

            wait_for(lambda: "cistern_train_auc" in read().types and
                     "cistern_train_pass" in read().types, "an evaluation and a pass")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
            page = read()
            self.check_documented(page, "cistern_train_",
                                  absent={"cistern_train_behind_messages", "cistern_train_behind_seconds"})
            self.assertGreater(page["cistern_train_steps_total"], 0)
            self.assertGreater(page["cistern_train_samples_total"], page["cistern_train_steps_total"])
            self.assertEqual(page["cistern_train_phase"], 1)
            self.assertGreater(page["cistern_train_calibration_ratio"], 0.2)
            self.assertLess(page["cistern_train_calibration_ratio"], 5)
            self.assertGreater(page.of("cistern_train_score", metric="ne"), 0)
            self.assertGreater(page["cistern_train_passes_total"], 0)
            again = read()
            self.assertGreaterEqual(again["cistern_train_steps_total"], page["cistern_train_steps_total"])
        finally:
            training.terminate()
            finish(training)
        self.assertFalse(path.exists())  # removed at the end

    def test_a_place_that_is_taken_is_named(self):
        servers = self.fleet(1)
        port = metrics_address(servers.all[0].ready).split(":")[1]
        self.write_model()
        result = finish(start("cistern", "train", self.config, "--out", self.folder / "run", "--metrics-port", port))
        self.expect(result, 1, port, "--metrics-port")
        result = finish(start("cistern", "train", self.config, "--out", self.folder / "run", "--metrics-port", "70000"))
        self.expect(result, 2, "70000", "--metrics-port")
        second = subprocess.run([str(ROOT / servers.all[0].process.args[0]), "--rank=0", "--server_num=1", "--port=0",
                                 f"--metrics_port={port}"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("--metrics_port", second.stderr)

    def test_another_address_is_asked_for_by_name(self):
        servers = Servers(1, self.folder, flags=("--metrics_port=0", "--metrics_bind=127.0.0.2"))
        self.addCleanup(servers.__exit__)
        self.assertRegex(servers.all[0].ready, r"metrics=http://127\.0\.0\.2:\d+/metrics$")
        self.assertIn("cistern_server_info", get(metrics_address(servers.all[0].ready)))
        self.write_model()
        train = ["cistern", "train", self.config, "--out", self.folder / "run", "--metrics-bind"]
        self.expect(finish(start(*train, "192.0.2.1", "--metrics-port", 0)), 3, "192.0.2.1", "--metrics-bind")
        self.expect(finish(start(*train, "127.0.0.1")), 2, "--metrics-bind", "--metrics-port")
        server = subprocess.run([str(ROOT / servers.all[0].process.args[0]), "--rank=0", "--server_num=1", "--port=0",
                                 "--metrics_bind=127.0.0.2"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(server.returncode, 2)
        self.assertIn("add --metrics_port", server.stderr)

    def version(self):
        return self.run_ok("cistern", "version", "--json").json()["version"]


if __name__ == "__main__":
    unittest.main()
