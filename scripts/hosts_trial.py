#!/usr/bin/env python3
"""Trains and serves on three hosts behind TLS, and attacks them from a fourth; the hosts are networks of this machine.

    scripts/hosts_trial.py [--bin DIR] [--keep]

    --bin DIR    folder of the programs                     default build/release/bin
    --keep       keeps the folder with logs, and names it

Each host runs a server and a worker, the last one also `cistern serve`; they share a folder. A training loses a whole
host, then a worker, and must end with the digests of one that was left alone. It is saved, exported and served. A
stranger with another authority's certificate, with none, with an expired one, and a reader who wants to write are
refused, and counted. With Debian's Prometheus (PROMETHEUS, or the PATH), which reads every host, the alerts of
deploy/monitoring that say so must fire, with all times shortened to seconds.

Takes about a minute. Needs root, namespaces and openssl; exits with 77 without them. No process and no network device
is left, whatever happens.
"""

import json
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from network_trial import ROOT, Failure, add_host, main, make_model, make_network, wait_for

sys.path.append(str(ROOT / "test/deploy"))
from prometheus_process import PROMETHEUS, Prometheus  # noqa: E402

NETWORK = "10.78.0"
HOSTS = 3
SERVER, PEERS, HTTP, GRPC, SERVER_FIGURES, TRAIN_FIGURES, PROMETHEUS_PORT = 7700, 7790, 8000, 8001, 9700, 9710, 9090
STRANGER = "stranger"
ALERTS = {"CisternServerDown", "CisternTrainLostAServer", "CisternServerRefusals", "CisternServerStrangers"}


# Handshakes of a client that trusts any server and shows a certificate, as CERT and KEY, or none: prints how many of them
# got a byte.
KNOCK = """
import socket, ssl, sys
host, port, count, *own = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["h2"])
if own:
    context.load_cert_chain(*own)
answered = 0
for _ in range(int(count)):
    try:
        with socket.create_connection((host, int(port)), 20) as raw, context.wrap_socket(raw) as secure:
            secure.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            answered += len(secure.recv(1))
    except (ssl.SSLError, ConnectionError):
        pass
print(answered)
"""


def address(host):
    return f"{NETWORK}.{11 + host}"


class Process:
    """A program on a host."""

    def __init__(self, trial, host, name, *words):
        self.name, self.log = name, trial.folder / f"{name}.log"
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", host, trial.programs / words[0], *map(str, words[1:])],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60) not in (0, 130):
            raise Failure(f"{self.name} stopped with {self.process.returncode}:\n{self.tail()}")

    def tail(self):
        return "".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines(True)[-15:])


class Trial:
    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.started = time.monotonic()
        self.data, self.certs, self.other = folder / "data", folder / "certs", folder / "other"
        self.data.mkdir()
        self.servers, self.workers, self.name, self.prometheus = [], [], "", None
        make_network(NETWORK)
        for host in range(HOSTS):
            add_host(f"host{host}", address(host))
        add_host(STRANGER, f"{NETWORK}.99")

    def say(self, text):
        print(f"{time.monotonic() - self.started:4.0f} s  {text}", flush=True)

    # --- commands ---

    def run(self, host, *words):
        return subprocess.run(["ip", "netns", "exec", host, self.programs / "cistern", *map(str, words)],
                              capture_output=True, text=True, check=False, timeout=120)

    def cistern(self, *words):
        done = self.run("host0", *words)
        if done.returncode != 0:
            raise Failure(f"cistern {' '.join(map(str, words[:2]))}: {done.stdout}{done.stderr}")
        return done.stdout

    def tls(self, name, certs=None, separator=" "):
        """The three flags, for cistern; with "=" for cistern-server."""
        certs = certs or self.certs
        files = {"ca": certs / "ca.crt", "cert": certs / f"{name}.crt", "key": certs / f"{name}.key"}
        if separator == "=":
            return [f"--tls_{key}={file}" for key, file in files.items()]
        return [word for key, file in files.items() for word in (f"--tls-{key}", file)]

    def make_certificates(self):
        for certs in (self.certs, self.other):
            self.cistern("certs", "init", "--certs", certs)
            self.cistern("certs", "issue", "ops", "--role", "admin", "--certs", certs)
        for host in range(HOSTS):
            self.cistern("certs", "issue", f"server-{host}", "--role", "server", "--hosts", address(host), "--certs",
                         self.certs)
            self.cistern("certs", "issue", f"worker-{host}", "--role", "worker", "--certs", self.certs)
        self.cistern("certs", "issue", "analyst", "--role", "reader", "--certs", self.certs)
        # One that ended yesterday.
        self.cistern("certs", "issue", "former", "--role", "admin", "--certs", self.certs)
        former, request, extensions = self.certs / "former.crt", self.folder / "former.csr", self.folder / "extensions"
        extensions.write_text("subjectAltName=URI:cistern://cistern/admin\nextendedKeyUsage=clientAuth\n", encoding="utf-8")
        for words in (["-x509toreq", "-in", former, "-signkey", self.certs / "former.key", "-out", request],
                      ["-req", "-in", request, "-CA", self.certs / "ca.crt", "-CAkey", self.certs / "ca.key", "-days", "-1",
                       "-extfile", extensions, "-out", former]):
            subprocess.run(["openssl", "x509", *words], check=True, capture_output=True)

    # --- the fleet ---

    @property
    def addresses(self):
        return ",".join(f"{address(host)}:{SERVER}" for host in range(HOSTS))

    def start_server(self, host):
        return Process(self, f"host{host}", f"{self.name}-server-{host}", "cistern-server", f"--rank={host}",
                       f"--server_num={HOSTS}", f"--bind={address(host)}", f"--port={SERVER}",
                       f"--data_dir={self.data / self.name}", f"--metrics_port={SERVER_FIGURES}",
                       f"--metrics_bind={address(host)}", *self.tls(f"server-{host}", separator="="))

    def start_worker(self, host):
        return Process(self, f"host{host}", f"{self.name}-worker-{host}", "cistern-worker", self.data / "model.json",
                       "--servers", self.addresses, "--out", self.data / f"run-{self.name}", "--rank", host, "--world-size",
                       HOSTS, "--peers", f"{address(0)}:{PEERS}", "--resume", "--metrics-port", TRAIN_FIGURES,
                       "--metrics-bind", address(host), *self.tls(f"worker-{host}"))

    def start(self, name):
        self.name = name
        (self.data / name).mkdir()
        self.servers = [self.start_server(host) for host in range(HOSTS)]
        self.workers = [self.start_worker(host) for host in range(HOSTS)]

    def ended(self):
        """Whether the training has. Starts those workers again that were killed, or stopped because another was."""
        for host, worker in enumerate(self.workers):
            code = worker.process.poll()
            if code in (-signal.SIGKILL, 130):
                self.workers[host] = self.start_worker(host)
            elif code not in (None, 0):
                raise Failure(f"{worker.name} ended with {code}:\n{worker.tail()}")
        return all(worker.process.poll() == 0 for worker in self.workers)

    def passes(self):
        metrics = self.data / f"run-{self.name}/metrics.jsonl"
        return metrics.read_text(encoding="utf-8").count('"event":"pass"') if metrics.exists() else 0

    def ten_more(self, after):
        before = self.passes()

        def reached():
            if self.ended():
                raise Failure("the training ended before its time")
            return self.passes() >= before + 10

        wait_for(120, f"ten more passes after {after}", reached)
        self.say(f"{after}: pass {self.passes()} is committed")

    def digests(self):
        tables = json.loads(self.cistern("status", "--servers", self.addresses, "--digest", "--json",
                                         *self.tls("analyst")))["tables"]
        return sorted((table["name"], table["rows"], table["digest"]) for table in tables)

    # --- Prometheus ---

    def start_prometheus(self):
        jobs = {"cistern-server": SERVER_FIGURES, "cistern-train": TRAIN_FIGURES}
        self.prometheus = Prometheus(self.folder, f"{NETWORK}.1:{PROMETHEUS_PORT}", [
            {"job_name": job, "static_configs": [{"targets": [f"{address(host)}:{port}" for host in range(HOSTS)]}]}
            for job, port in jobs.items()])
        wait_for(60, "Prometheus", lambda: self.prometheus.ask("up") is not None)

    def fired(self):
        return self.prometheus.fired() & ALERTS

    def await_alerts(self, alerts, fired):
        try:
            wait_for(60, "alerts", fired)
        except Failure as failure:
            raise Failure(f"{failure}; silent: {', '.join(alerts - self.fired())}") from None

    def figure(self, host, name):
        """The sum of a figure's samples, read by the stranger: figures are for everyone who reaches their address."""
        page = subprocess.run(
            ["ip", "netns", "exec", STRANGER, sys.executable, "-c",
             "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())",
             f"http://{address(host)}:{SERVER_FIGURES}/metrics"], capture_output=True, text=True, check=True).stdout
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))

    def knock(self, host, count, certificate):
        """How many of so many handshakes a server answers."""
        own = [f"{certificate}.crt", f"{certificate}.key"] if certificate else []
        return int(subprocess.run(
            ["ip", "netns", "exec", STRANGER, sys.executable, "-c", KNOCK, address(host), str(SERVER), str(count), *own],
            capture_output=True, text=True, check=True).stdout)

    # --- the steps ---

    def train_alone(self):
        self.start("alone")
        wait_for(240, "the end of the training", self.ended)
        found = self.digests()
        for server in self.servers:
            server.stop()
        self.say(f"a training that was left alone: {found}")
        return found

    def train_through_losses(self):
        self.start("lossy")
        self.ten_more("the start")
        self.servers[1].kill()
        self.workers[1].kill()
        self.say("host 1 is lost, with its server and its worker")
        time.sleep(5)  # long enough for others to see it
        self.servers[1] = self.start_server(1)
        self.ten_more("host 1 is back")
        self.workers[2].kill()
        self.ten_more("worker 2 was killed")
        self.servers[0].kill()
        if PROMETHEUS:
            lost = {"CisternServerDown", "CisternTrainLostAServer"}
            self.await_alerts(lost, lambda: lost <= self.fired())
        self.servers[0] = self.start_server(0)
        self.ten_more("server 0 was killed")
        self.refuse_strangers()
        wait_for(240, "the end of the training", self.ended)
        return self.digests()

    def refuse_strangers(self):
        """During the training."""
        status = ["status", "--servers", self.addresses, "--timeout", 3]
        without = self.figure(0, "cistern_server_connections_without_call_total")
        for what, flags, certificate in (
                ("without a certificate", [], None),
                ("with a certificate of another authority", self.tls("ops", self.other), self.other / "ops"),
                ("with an expired certificate", self.tls("former"), self.certs / "former")):
            refused = self.run(STRANGER, *status, *flags)
            if refused.returncode not in (2, 3):
                raise Failure(f"a stranger {what} got {refused.returncode}: {refused.stdout}{refused.stderr}")
            answered = [self.knock(host, 1, certificate) for host in range(HOSTS)]
            if answered != [0] * HOSTS:
                raise Failure(f"servers answered a stranger {what}: {answered}")
            self.say(f"a stranger {what} is refused: {refused.stderr.strip().splitlines()[0][:120]}")
        if self.knock(0, 1, self.certs / "analyst") != 1:
            raise Failure("a server does not answer a reader's handshake")
        wait_for(30, "strangers to be counted",
                 lambda: self.figure(0, "cistern_server_connections_without_call_total") > without)
        denied = 'cistern_server_call_errors_total{code="PERMISSION_DENIED"}'
        before = self.figure(0, denied)
        save = ["save", "--servers", self.addresses, "--name", "stolen", *self.tls("analyst")]
        refused = self.run(STRANGER, *save)
        if refused.returncode != 2 or "needs the role admin" not in refused.stderr:
            raise Failure(f"a reader who saves got {refused.returncode}: {refused.stdout}{refused.stderr}")
        self.say(f"a reader who saves is refused: {refused.stderr.strip().splitlines()[0]}")
        if not sum(self.figure(host, denied) for host in range(HOSTS)) > before:
            raise Failure("the reader's refusal is not counted")
        audit = (self.data / "lossy/audit-0.jsonl").read_text(encoding="utf-8")
        if not any(line["caller"] == "analyst" and line["outcome"] == "PERMISSION_DENIED"
                   for line in map(json.loads, audit.splitlines())):
            raise Failure("the reader's refusal is not in the audit log")
        if PROMETHEUS:
            def attacked():
                for _ in range(4):
                    self.run(STRANGER, *save)
                    self.knock(0, 10, self.certs / "former")
                return self.fired() == ALERTS
            self.await_alerts(ALERTS, attacked)
            self.say(f"fired: {', '.join(sorted(self.fired()))}")

    def save_and_serve(self):
        self.cistern("save", "--servers", self.addresses, "--name", "evening", *self.tls("ops"))
        self.cistern("export", "serving", self.data / "model.json", "--model", self.data / "run-lossy", "--out",
                     self.data / "serving")
        self.say("saved by an admin, and exported")
        last = HOSTS - 1
        served = Process(self, f"host{last}", "serve", "cistern", "serve", self.data / "serving", "--bind", address(last),
                         "--port", HTTP, "--grpc-port", GRPC, "--tls-cert", self.certs / f"server-{last}.crt", "--tls-key",
                         self.certs / f"server-{last}.key", "--tls-client-ca", self.certs / "ca.crt")

        def code(name, certs):
            """The answer's code; None if the connection fails."""
            context = ssl.create_default_context(cafile=str(self.certs / "ca.crt"))
            if name:
                context.load_cert_chain(certs / f"{name}.crt", certs / f"{name}.key")
            try:
                with urllib.request.urlopen(f"https://{address(last)}:{HTTP}/v2/health/ready", context=context,
                                            timeout=20) as reply:
                    return reply.status
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                return None

        wait_for(60, "the serving process", lambda: code("analyst", self.certs) == 200)
        for name, certs in ((None, None), ("ops", self.other), ("former", self.certs)):
            if code(name, certs) not in (None, 403):
                raise Failure(f"serving answered {name} of {certs} with {code(name, certs)}")
        served.stop()
        self.say("the model was served behind TLS, and strangers were refused there too")

    def run_all(self):
        make_model(self.cistern, self.folder, self.data, self.data)
        self.make_certificates()
        expected = self.train_alone()
        if PROMETHEUS:
            self.start_prometheus()
        found = self.train_through_losses()
        if found != expected:
            raise Failure(f"other bits: {found} instead of {expected}")
        self.say("it has the same bits")
        self.save_and_serve()
        for server in self.servers:
            server.stop()
        self.say("no prometheus: alerts were not tried" if not PROMETHEUS else "all alerts fired")


def inside(folder, programs):
    Trial(folder, programs).run_all()


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, inside, programs=["openssl"]))
