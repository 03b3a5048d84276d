"""Debian's Prometheus reads a real fleet, with the rules of deploy/monitoring and all times shortened to seconds, while
processes are killed, refused, starved and damaged. Each alert must fire once.

What cannot be brought about in seconds (slow pulls, an AUC that falls) comes from a page of figures that this test
serves, with the series of alerts_test.py.

PROMETHEUS and PROMTOOL are the programs, or those of the PATH (Debian: prometheus). Exit code 77 (skipped) without them.
"""

import http.server
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "test/integration"), str(ROOT / "test/deploy")]
from alerts_test import CASES, MONITORING, PROMTOOL, alerts  # noqa: E402
from prometheus_process import PROMETHEUS, Prometheus  # noqa: E402
from programs import BIN, LIMIT_SECONDS, ProgramTest, Samples, Server, finish, free_ports, run, start, wait_for  # noqa: E402
from serve_process import Serve, json_body  # noqa: E402

SHOWN = {"CisternServerStagingFull", "CisternServerUncommittedChange", "CisternServerSlowPulls", "CisternTrainAucFell",
         "CisternTrainIdle", "CisternTrainBehind", "CisternServeCertificatesFailing", "CisternServeOverload", "CisternServeSlow",
         "CisternServeErrors", "CisternServeLogDropped"}


def value_at(notation, step):
    """The value of promtool's notation at a step; a part before the last one counts at most 4 steps."""
    parts = notation.split()
    for i, part in enumerate(parts):
        found = re.fullmatch(r"([\d.]+)(?:\+([\d.]+))?(?:x(\d+))?", part)
        first, more, count = float(found[1]), float(found[2] or 0), int(found[3] or 0)
        steps = count + 1 if i == len(parts) - 1 else min(4, count + 1)
        if step < steps or i == len(parts) - 1:
            return first + more * step
        step -= steps
    raise AssertionError(notation)


class ShownFigures:
    """An HTTP server whose pages /JOB hold the series of the alerts in SHOWN, a step at each scrape."""

    def __init__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = outer.page(self.path.strip("/")).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.steps = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def page(self, job):
        step = self.steps[job] = self.steps.get(job, -1) + 1
        lines = []
        for alert in sorted(SHOWN):
            for series, notation in CASES[alert][0].items():
                if f'job="{job}"' in series:
                    name = re.sub(r'job="[^"]*",instance="[^"]*",?', "", series).replace("{}", "")
                    lines.append(f"{name} {value_at(notation, step)}\n")
        return "".join(lines)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class PrometheusTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.shown = ShownFigures()
        self.addCleanup(self.shown.stop)
        names = ("s0", "s1", "lone", "main", "skips", "empty", "prometheus")
        self.ports = dict(zip(names, free_ports(len(names))))

    def start_prometheus(self, serving):
        """serving: addresses of serving processes."""
        scrapes = []
        targets = {"cistern-server": ["s0", "s1", "lone"], "cistern-train": ["main", "skips"]}
        for job in ("cistern-server", "cistern-train", "cistern-serve"):
            places = [f"127.0.0.1:{self.ports[name]}" for name in targets.get(job, [])] or serving
            scrapes += [
                {"job_name": job, "static_configs": [{"targets": places}]},
                {"job_name": job + "-shown", "metrics_path": "/" + job,
                 "static_configs": [{"targets": [self.shown.address]}],
                 "relabel_configs": [{"target_label": "job", "replacement": job}]}]
        self.prometheus = Prometheus(self.folder, f"127.0.0.1:{self.ports['prometheus']}", scrapes)
        self.addCleanup(self.prometheus.stop)
        wait_for(lambda: self.ask("up") is not None, "Prometheus")

    def ask(self, query):
        return self.prometheus.ask(query)

    def fired(self):
        return self.prometheus.fired()

    def await_alerts(self, *names):
        wait_for(lambda: set(names) <= self.fired(), f"the alerts {names}; fired: {self.fired()}")

    def server(self, name, rank, count, port=0, flags=()):
        folder = self.folder / ("lone" if name == "lone" else "fleet")
        (folder / "saved").mkdir(parents=True, exist_ok=True)
        server = Server(rank, count, folder, port=port, durability="none" if name == "lone" else "commit",
                        flags=(f"--metrics_port={self.ports[name]}", *flags))
        self.addCleanup(server.stop)
        return server

    def training(self, name, change, *flags):
        config = self.folder / f"{name}.json"
        self.config, kept = config, self.config
        self.write_model(change)
        self.config = kept
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(BIN / "cistern"), "train", str(config), "--out", str(self.folder / name),
                                        "--metrics-port", str(self.ports[name]), *map(str, flags)],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            process.terminate()
            process.wait(LIMIT_SECONDS)

        self.addCleanup(end)
        return end

    def figure(self, name, figure):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=20) as reply:
            page = reply.read().decode()
        return sum(float(value) for value in re.findall(rf"^{figure}(?:\{{.*\}})? (\S+)$", page, re.M))

    def test_every_alert_fires(self):
        endless = {"solver": {"max_iter": 100000000, "display": 1000, "eval_interval": 50, "num_epochs": None}}

        def merge(content, changes):
            for key, value in changes.items():
                if value is None:
                    content.pop(key, None)
                elif isinstance(value, dict):
                    merge(content.setdefault(key, {}), value)
                else:
                    content[key] = value

        def run_forever(content):
            merge(content, endless)

        def skip_steps(content):
            merge(content, endless)
            merge(content, {"cistern": {"not_finite": "skip"}, "solver": {"eval_interval": 1000000}})
            content["optimizer"]["adam_hparam"]["learning_rate"] = 1e30

        # Evaluated on clicks that are more frequent than those of the training: the calibration is off.
        clicks = Samples(self.SAMPLES // 4, seed=2)
        clicks.rows = [(1.0, *rest) for _, *rest in clicks.rows[:-5]] + clicks.rows[-5:]
        clicks.write(self.test_file)

        servers = [self.server("s0", 0, 2), self.server("s1", 1, 2)]
        lone = self.server("lone", 0, 1, flags=("--staged_limit_mb=1",))
        addresses = ",".join(server.address for server in servers)
        run("cistern", "train", self.config, "--out", self.folder / "published", "--set", "solver.num_epochs=1",
            "--durability", "commit")
        serving = self.folder / "serving"
        self.run_ok("cistern", "publish", self.config, "--follow", self.folder / "published", "--out", serving, "--once")
        (self.folder / "empty").mkdir()
        served = Serve(serving)
        self.addCleanup(served.__exit__)
        waits = start("cistern", "serve", self.folder / "empty", "--port", self.ports["empty"], "--grpc-port", 0)
        self.addCleanup(lambda: (waits.terminate(), finish(waits)))
        end_main = self.training("main", run_forever, "--servers", addresses, "--recovery-limit", 600)
        self.training("skips", skip_steps, "--durability", "none")
        self.start_prometheus([served.ready["http"], f"127.0.0.1:{self.ports['empty']}"])

        self.await_alerts("CisternServersDisagree", "CisternServerNoCommit", "CisternTrainCalibrationOff",
                          "CisternTrainSkippedSteps", "CisternServeNotReady", *SHOWN)
        wait_for(lambda: served.post(json_body(Samples(5, seed=3).rows))[0] == 200 and self.ask(
            'rate(cistern_serve_requests_total{method="infer"}[6s]) > 0'), "predictions")
        self.check_dashboard()
        self.check_pages(served.ready["http"])

        # Strangers, a full stage, and too few files.
        def refuse():
            for _ in range(8):
                self.assertEqual(run("cistern", "scrub", "--servers", lone.address).code, 1)
            return "CisternServerRefusals" in self.fired()

        wait_for(refuse, "CisternServerRefusals")

        def knock():
            for _ in range(20):
                socket.create_connection(("127.0.0.1", lone.port), timeout=20).close()
            return "CisternServerStrangers" in self.fired()

        wait_for(knock, "CisternServerStrangers")
        self.config.write_text(json.dumps(self.wide_model()), encoding="utf-8")
        run("cistern", "train", self.config, "--servers", lone.address, "--out", self.folder / "wide")

        def starve():  # down to what it has open now: connections of before are still closing
            files = int(self.figure("lone", "process_open_fds")) + 1
            subprocess.run(["prlimit", f"--pid={lone.process.pid}", f"--nofile={files}:"], check=True)
            return "CisternOpenFilesNearLimit" in self.fired()

        wait_for(starve, "CisternOpenFilesNearLimit")
        self.await_alerts("CisternServerErrors")

        # A server is lost, and comes back.
        servers[1].kill()
        self.await_alerts("CisternServerDown", "CisternTrainStalled", "CisternTrainLostAServer")
        steps = self.figure("main", "cistern_train_steps_total")
        servers[1] = self.server("s1", 1, 2, port=servers[1].port)
        wait_for(lambda: self.figure("main", "cistern_train_steps_total") > steps, "the training to go on")
        end_main()
        self.await_alerts("CisternTrainDown")

        # The files of the state are damaged.
        for damaged in (self.folder / "fleet/saved/state/data").iterdir():
            content = bytearray(damaged.read_bytes())
            content[len(content) // 2] ^= 1
            damaged.write_bytes(content)
        self.assertEqual(run("cistern", "scrub", "--servers", addresses, "--files").code, 5)

        # Requests with keys that nobody has seen; then the folder is damaged, and the process ends.
        unseen = [(label, dense, [[key + 10**9 for key in slot] for slot in slots])
                  for label, dense, slots in Samples(20, seed=3).rows]
        wait_for(lambda: served.post(json_body(unseen))[0] == 200 and "CisternServeUnseenKeys" in self.fired(),
                 "CisternServeUnseenKeys")
        (serving / "HEAD").write_text("{}", encoding="utf-8")
        self.await_alerts("CisternServerDataLoss", "CisternServeCannotOpen")
        served.stop()
        self.await_alerts("CisternServeDown")
        self.assertEqual(self.fired(), set(alerts()))

    def wide_model(self):
        content = json.loads(self.config.read_text(encoding="utf-8"))
        content["solver"]["num_epochs"] = 1
        for layer in content["layers"]:
            if layer["name"] == "fc1":
                layer["fc_param"]["num_output"] = 20000
        return content

    def check_dashboard(self):
        """Prometheus accepts each expression of the dashboard, and most have figures here."""
        dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        answers = {}
        for expression in expressions:
            query = expression.replace("$__rate_interval", "6s").replace("$job", ".*").replace("$instance", ".*")
            answers[expression] = self.ask(query)
            self.assertIsNotNone(answers[expression], expression)
        # Errors are shown where there are some.
        empty = [expression for expression, samples in answers.items()
                 if not samples and not expression.endswith("> 0")]
        self.assertEqual(empty, [])

    def check_pages(self, serving):
        """Prometheus' linter has nothing to say about the pages."""
        for address in (f"127.0.0.1:{self.ports['s0']}", f"127.0.0.1:{self.ports['main']}", serving):
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as reply:
                page = reply.read().decode()
            result = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, text=True,
                                    timeout=LIMIT_SECONDS, check=False)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), page)


if __name__ == "__main__":
    if not PROMETHEUS or not PROMTOOL or not shutil.which("prlimit"):
        print("skipped: no prometheus, promtool or prlimit (Debian: prometheus, util-linux)")
        sys.exit(77)
    unittest.main()
