"""Debian's Prometheus with the rules of deploy/monitoring, all of whose times are shortened to seconds.

PROMETHEUS is the program, or that of the PATH; None without one.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
ALERTS = pathlib.Path(__file__).resolve().parents[2] / "deploy/monitoring/alerts.yml"


def shortened(rules):
    """Rules whose `for` is a second, whose ranges are some seconds, and whose hours are 3 s."""
    rules = re.sub(r"for: \d+[mh]", "for: 1s", rules)
    rules = re.sub(r"\[\d+[mhd]\]", "[6s]", rules)
    return rules.replace("> 3600", "> 3")


class Prometheus:
    """A process that scrapes and evaluates every second; `ask` returns None until it answers."""

    def __init__(self, folder, address, scrape_configs):
        """folder: for its files. address: where it listens, HOST:PORT."""
        self.address = address
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                  "rule_files": ["alerts.yml"], "scrape_configs": scrape_configs}
        (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        (folder / "alerts.yml").write_text(shortened(ALERTS.read_text(encoding="utf-8")), encoding="utf-8")
        with open(folder / "prometheus.log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address={address}"], stdout=log, stderr=log)

    def stop(self):
        self._process.terminate()
        self._process.wait()

    def ask(self, query):
        """The samples of a query; None while Prometheus does not answer."""
        url = f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=20) as reply:
                return json.load(reply)["data"]["result"]
        except OSError:
            return None

    def fired(self):
        """The names of the alerts that have fired."""
        found = self.ask('max_over_time(ALERTS{alertstate="firing"}[1h])') or []
        return {sample["metric"]["alertname"] for sample in found}
