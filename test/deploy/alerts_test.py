"""Makes each alert of deploy/monitoring/alerts.yml fire once by promtool, and keeps each silent on healthy figures.

promtool is that of PROMTOOL, or of the PATH (Debian: prometheus). Exit code 77 (skipped) without it.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy/monitoring"
ALERTS = MONITORING / "alerts.yml"
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")

SERVER = 'job="cistern-server",instance="s0"'
OTHER = 'job="cistern-server",instance="s1"'
TRAIN = 'job="cistern-train",instance="w0"'
SERVE = 'job="cistern-serve",instance="p0"'


def buckets(name, labels, *series):
    """Buckets of a histogram: pairs of a bound and the values."""
    return {f'{name}_bucket{{{labels},le="{bound}"}}': values for bound, values in series}


# alert: (firing series, silent series). A series is promtool's notation: "first+step x count", one value a minute.
# The silent series differ from the firing ones in what the alert is about, and in nothing else.
CASES = {
    "CisternServerDown": ({f"up{{{SERVER}}}": "1 0x200"}, {f"up{{{SERVER}}}": "1x200"}),
    "CisternServerNoCommit": (
        {f"cistern_server_last_commit_time_seconds{{{SERVER}}}": "60x200",
         f"process_start_time_seconds{{{SERVER}}}": "0x200", f"cistern_train_steps_total{{{TRAIN}}}": "0+9x200"},
        {f"cistern_server_last_commit_time_seconds{{{SERVER}}}": "0+60x200",
         f"process_start_time_seconds{{{SERVER}}}": "0x200", f"cistern_train_steps_total{{{TRAIN}}}": "0+9x200"}),
    "CisternServersDisagree": (
        {f"cistern_server_committed_pass{{{SERVER}}}": "9x200", f"cistern_server_committed_pass{{{OTHER}}}": "7x200"},
        {f"cistern_server_committed_pass{{{SERVER}}}": "9x200", f"cistern_server_committed_pass{{{OTHER}}}": "8x200"}),
    "CisternServerStagingFull": (
        {f"cistern_server_staged_bytes{{{SERVER}}}": "95x200",
         f"cistern_server_staged_limit_bytes{{{SERVER}}}": "100x200"},
        {f"cistern_server_staged_bytes{{{SERVER}}}": "85x200",
         f"cistern_server_staged_limit_bytes{{{SERVER}}}": "100x200"}),
    "CisternServerDataLoss": (
        {f'cistern_server_call_errors_total{{{SERVER},code="DATA_LOSS"}}': "0x100 1x100"},
        {f'cistern_server_call_errors_total{{{SERVER},code="DATA_LOSS"}}': "1x200"}),
    "CisternServerErrors": (
        {f'cistern_server_call_errors_total{{{SERVER},code="RESOURCE_EXHAUSTED"}}': "0x100 3x100"},
        {f'cistern_server_call_errors_total{{{SERVER},code="UNAVAILABLE"}}': "0+9x200"}),
    "CisternServerRefusals": (
        {f'cistern_server_call_errors_total{{{SERVER},code="FAILED_PRECONDITION"}}': "0+90x200"},
        {f'cistern_server_call_errors_total{{{SERVER},code="FAILED_PRECONDITION"}}': "0+30x200"}),
    "CisternServerStrangers": (
        {f"cistern_server_connections_without_call_total{{{SERVER}}}": "0+90x200"},
        {f"cistern_server_connections_without_call_total{{{SERVER}}}": "0+30x200"}),
    "CisternServerUncommittedChange": (
        {f"cistern_server_dirty{{{SERVER}}}": "1x200"},
        {f"cistern_server_dirty{{{SERVER}}}": "0 1x20 0x20 1x20 0x140"}),
    "CisternServerSlowPulls": (
        buckets("cistern_server_call_seconds", SERVER + ',method="Pull"', ("0.1", "0+98x200"), ("1", "0+100x200"),
                ("+Inf", "0+100x200")),
        buckets("cistern_server_call_seconds", SERVER + ',method="Pull"', ("0.1", "0+995x200"), ("1", "0+1000x200"),
                ("+Inf", "0+1000x200"))),
    "CisternOpenFilesNearLimit": (
        {f"process_open_fds{{{SERVER}}}": "1000x200", f"process_max_fds{{{SERVER}}}": "1024x200"},
        {f"process_open_fds{{{SERVER}}}": "800x200", f"process_max_fds{{{SERVER}}}": "1024x200"}),
    "CisternTrainDown": ({f"up{{{TRAIN}}}": "1 0x200"}, {f"up{{{TRAIN}}}": "1x200"}),
    "CisternTrainStalled": (
        {f"cistern_train_steps_total{{{TRAIN}}}": "5x200"}, {f"cistern_train_steps_total{{{TRAIN}}}": "5+1x200"}),
    "CisternTrainSkippedSteps": (
        {f"cistern_train_skipped_steps{{{TRAIN}}}": "0x90 0+2x20"}, {f"cistern_train_skipped_steps{{{TRAIN}}}": "9x200"}),
    "CisternTrainLostAServer": (
        {f"cistern_train_losses_total{{{TRAIN}}}": "0x100 1x100"}, {f"cistern_train_losses_total{{{TRAIN}}}": "1x200"}),
    "CisternTrainBehind": (
        {f"cistern_train_behind_seconds{{{TRAIN}}}": "1000x200"}, {f"cistern_train_behind_seconds{{{TRAIN}}}": "800x200"}),
    "CisternTrainCalibrationOff": (
        {f"cistern_train_calibration_ratio{{{TRAIN}}}": "1.5x200"},
        {f"cistern_train_calibration_ratio{{{TRAIN}}}": "1.1x200"}),
    "CisternTrainAucFell": (
        {f"cistern_train_auc{{{TRAIN}}}": "0.75x50 0.7x150"}, {f"cistern_train_auc{{{TRAIN}}}": "0.75x50 0.74x150"}),
    "CisternTrainIdle": (
        {f'cistern_train_idle_seconds_total{{{TRAIN},cause="pull"}}': "0+12x200",
         f'cistern_train_idle_seconds_total{{{TRAIN},cause="data"}}': "0+12x200"},
        {f'cistern_train_idle_seconds_total{{{TRAIN},cause="pull"}}': "0+12x200",
         f'cistern_train_idle_seconds_total{{{TRAIN},cause="data"}}': "0+1x200"}),
    "CisternServeDown": ({f"up{{{SERVE}}}": "1 0x200"}, {f"up{{{SERVE}}}": "1x200"}),
    "CisternServeNotReady": (
        {f"cistern_serve_ready{{{SERVE}}}": "0x200"}, {f"cistern_serve_ready{{{SERVE}}}": "0 1x200"}),
    "CisternServeCannotOpen": (
        {f"cistern_serve_open_failing{{{SERVE}}}": "1x200"}, {f"cistern_serve_open_failing{{{SERVE}}}": "0x200"}),
    "CisternServeCertificatesFailing": (
        {f"cistern_serve_certificates_failing{{{SERVE}}}": "1x200"},
        {f"cistern_serve_certificates_failing{{{SERVE}}}": "0x200"}),
    "CisternServeOverload": (
        {f"cistern_serve_refused_total{{{SERVE}}}": "0+6x200"}, {f"cistern_serve_refused_total{{{SERVE}}}": "6x200"}),
    "CisternServeSlow": (
        buckets("cistern_serve_infer_seconds", SERVE + ',protocol="grpc"', ("0.05", "0+98x200"), ("1", "0+100x200"),
                ("+Inf", "0+100x200")),
        buckets("cistern_serve_infer_seconds", SERVE + ',protocol="grpc"', ("0.05", "0+995x200"), ("1", "0+1000x200"),
                ("+Inf", "0+1000x200"))),
    "CisternServeErrors": (
        {f'cistern_serve_requests_total{{{SERVE},outcome="INTERNAL"}}': "0+1x200"},
        {f'cistern_serve_requests_total{{{SERVE},outcome="INVALID_ARGUMENT"}}': "0+1x200"}),
    "CisternServeUnseenKeys": (
        {f"cistern_serve_unseen_keys_total{{{SERVE}}}": "0+600x200", f"cistern_serve_keys_total{{{SERVE}}}": "0+1000x200"},
        {f"cistern_serve_unseen_keys_total{{{SERVE}}}": "0+400x200", f"cistern_serve_keys_total{{{SERVE}}}": "0+1000x200"}),
    "CisternServeLogDropped": (
        {f"cistern_serve_log_dropped_total{{{SERVE}}}": "0x100 5x100"},
        {f"cistern_serve_log_dropped_total{{{SERVE}}}": "5x200"}),
}
AT = "109m"  # when alerts are looked at: late enough for each `for`, and soon after what happens at 100 minutes


def alerts():
    return re.findall(r"^ *- alert: (\w+)", ALERTS.read_text(encoding="utf-8"), re.M)


def run(words):
    return subprocess.run([PROMTOOL, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


def figures():
    """The names that docs/monitoring.md lists, with those of the samples of histograms."""
    rows = re.findall(r"^\| `([a-z_]+)(?:\{[a-z_,]+\})?` \| (\w+) \|",
                      (ROOT / "docs/monitoring.md").read_text(encoding="utf-8"), re.M)
    names = {name for name, _ in rows}
    return names | {name + suffix for name, kind in rows if kind == "histogram"
                    for suffix in ("_bucket", "_sum", "_count")}


class AlertsTest(unittest.TestCase):
    def test_every_alert_has_a_case(self):
        self.assertEqual(sorted(CASES), sorted(alerts()))

    def test_alerts_and_dashboard_know_only_figures_that_exist(self):
        for path in (ALERTS, MONITORING / "dashboard.json"):
            used = set(re.findall(r"\b(?:cistern_(?:server|train|serve)|process)_[a-z_]+", path.read_text(encoding="utf-8")))
            self.assertGreater(len(used), 10)
            self.assertEqual(used - figures(), set(), path)

    @unittest.skipUnless(PROMTOOL, "no promtool")
    def test_each_alert_fires_and_keeps_silent(self):
        for name, (firing, silent) in CASES.items():
            with self.subTest(name):
                self.assertEqual(self.firing(firing), {name})
                self.assertEqual(self.firing(silent), set())

    @unittest.skipUnless(PROMTOOL, "no promtool")
    def test_the_files_are_valid(self):
        for words in (["check", "rules", ALERTS], ["check", "config", MONITORING / "prometheus.yml"]):
            result = run(words)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def firing(self, series):
        """The alerts that fire on these series: promtool says which do that nobody expected."""
        with tempfile.TemporaryDirectory() as folder:
            test = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [{
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [{"eval_time": AT, "alertname": name, "exp_alerts": []} for name in CASES]}]}
            path = pathlib.Path(folder, "test.yml")
            path.write_text(json.dumps(test), encoding="utf-8")  # YAML includes JSON
            result = run(["test", "rules", path])
        self.assertIn("Unit Testing", result.stdout + result.stderr)
        found = set(re.findall(r"alertname: ?(\w+), time", result.stdout + result.stderr))
        self.assertEqual(result.returncode != 0, bool(found), result.stdout + result.stderr)
        return found


if __name__ == "__main__":
    if not PROMTOOL:
        print("skipped: no promtool (Debian: prometheus)")
        sys.exit(77)
    unittest.main()
