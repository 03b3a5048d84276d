#!/usr/bin/env python3
"""Runs the pods of deploy/kubernetes on this machine, as a kubelet would, without Kubernetes.

    scripts/kubernetes_trial.py [--bin DIR] [--keep]

    --bin DIR    folder of the programs                     default build/release/bin
    --keep       keeps the folder with logs, and names it

Command, arguments, environment, user, mounts, certificates, probes and failure policy are those of the files. Each pod
has a process tree, a network address, a host name and a read-only root of its own; a pod that is replaced gets another
address under its name, as it would there. A training loses a server (deleted), a worker (killed) and another (evicted),
and must end with the digests of one that was left alone; then its model is served, and a training with a wrong model must
fail the Job.
What is not tried: scheduling, volumes, limits of cores and memory, seccomp.

Takes about two minutes. Needs root, namespaces and PyYAML; exits with 77 without them. No process, mount or network
device is left, whatever happens.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from network_trial import ROOT, Failure, add_host, main, make_model, make_network, wait_for

sys.path.insert(0, str(ROOT / "build/kubernetes_validate"))
FILES = ROOT / "deploy/kubernetes"
NETWORK = "10.77.0"
WORKERS = 2  # instead of the number in the file: this machine is smaller


def resources(name):
    """The resources of a file, by kind."""
    import yaml
    return {entry["kind"]: entry for entry in yaml.safe_load_all((FILES / name).read_text(encoding="utf-8"))}


# --- probes -----------------------------------------------------------------------------------------------------------

def is_open(address, port, timeout):
    try:
        socket.create_connection((address, port), timeout).close()
        return True
    except OSError:
        return False


def answers(address, port, path, timeout):
    try:
        with urllib.request.urlopen(f"http://{address}:{port}{path}", timeout=timeout) as reply:
            return reply.status == 200
    except OSError:
        return False


# --- pods -------------------------------------------------------------------------------------------------------------

# Runs as root in the pod's namespaces: makes its root file system and becomes its command. ROOT is an overlay of this
# machine's; only the volumes are writable.
SETUP = r"""
set -eu
hostname "$POD_NAME"
mount --make-rprivate /
mount -t tmpfs tmpfs "$POD_DIR"
mkdir "$POD_DIR/upper" "$POD_DIR/work" "$POD_DIR/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$POD_DIR/upper,workdir=$POD_DIR/work" "$POD_DIR/root"
cd "$POD_DIR/root"
mkdir -p proc dev data tls etc usr/bin
touch etc/hosts
mount -t proc proc proc
mount -t tmpfs tmpfs dev
for device in null zero full random urandom; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mount --bind "$POD_HOSTS" etc/hosts
for program in cistern cistern-server cistern-worker; do
  touch usr/bin/$program
  mount --bind "$POD_BIN/$program" usr/bin/$program
done
mount --bind "$POD_DATA" data
if [ "$POD_READ_ONLY" = yes ]; then mount -o remount,bind,ro data; fi
if [ -n "$POD_SECRET" ]; then mount --bind "$POD_SECRET" tls; mount -o remount,bind,ro tls; fi
mount -o remount,ro .
user="$POD_USER" group="$POD_GROUP" dir="$POD_WORKING_DIR"
exec chroot . /usr/bin/setpriv --reuid "$user" --regid "$group" --groups "$group" --no-new-privs --inh-caps=-all \
  --bounding-set=-all /usr/bin/env -i -C "$dir" "$@"
"""


class Cluster:
    """The network and the volume that the pods share."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.data = folder / "data"
        self.data.mkdir()
        self.hosts = folder / "hosts"
        self.hosts.touch()
        subprocess.run(["mount", "--bind", self.hosts, "/etc/hosts"], check=True)  # for status, too
        self.certs = folder / "certs"
        self._addresses, self._used = {}, 1
        make_network(NETWORK)

    def new_address(self, name, domain):
        """An address that no pod had, which the pod's name leads to from now on."""
        self._used += 1
        address = f"{NETWORK}.{self._used}"
        self._addresses[f"{name}.{domain} {name}" if domain else name] = address
        # In place, because pods have this file mounted.
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {names}\n" for names, address in self._addresses.items()))
        return address

    def make_secret(self, name, certificate, group):
        """What kubectl create secret does, as the files say, and a volume of it with defaultMode 0440."""
        place = self.folder / name
        place.mkdir()
        for key, file in (("ca.crt", "ca.crt"), ("tls.crt", f"{certificate}.crt"), ("tls.key", f"{certificate}.key")):
            shutil.copy(self.certs / file, place / key)
            os.chown(place / key, 0, group)
            (place / key).chmod(0o440)

    def allow(self, group):
        """What fsGroup does: the volume belongs to the pods' group."""
        for path in [self.data, *self.data.rglob("*")]:
            os.chown(path, -1, group)
            path.chmod(path.stat().st_mode | (0o2770 if path.is_dir() else 0o660))


class Pod:
    """One pod: the first container of a template."""

    def __init__(self, cluster, name, template, domain=None, labels=(), environment=(), replace=()):
        spec = template["spec"]
        container = spec["containers"][0]
        self.cluster, self.name, self.container, self.grace = cluster, name, container, spec["terminationGracePeriodSeconds"]
        labels = dict(labels)
        values = dict(environment)
        for entry in container.get("env", []):
            if "value" in entry:
                values[entry["name"]] = entry["value"]
            else:
                path = entry["valueFrom"]["fieldRef"]["fieldPath"]
                values[entry["name"]] = labels[re.fullmatch(r"metadata\.labels\['(.*)'\]", path).group(1)]
        values.update(replace)
        words = [re.sub(r"\$\((\w+)\)", lambda match: values[match.group(1)], word)
                 for word in container["command"] + container.get("args", [])]
        security = {**spec["securityContext"], **container["securityContext"]}
        if not (security["runAsNonRoot"] and security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
                and security["capabilities"]["drop"] == ["ALL"]):
            raise Failure(f"{name}: the trial knows pods without rights only")
        if "fsGroup" in security:
            cluster.allow(security["fsGroup"])
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        mount = mounts["/data"]
        secrets = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
        if set(mounts) - {"/data", "/tls"} or len(secrets) != len(mounts) - 1:
            raise Failure(f"{name}: the trial knows a volume at /data and a secret at /tls")
        self.address = cluster.new_address(name, domain)
        link = f"p{self.address.rsplit('.', 1)[1]}"
        add_host(link, self.address)
        place = cluster.folder / f"{link}-{name}"
        place.mkdir()
        self.log = cluster.folder / f"{link}-{name}.log"
        setup = {**os.environ, "POD_NAME": name, "POD_DIR": str(place), "POD_HOSTS": str(cluster.hosts),
                 "POD_BIN": str(cluster.programs), "POD_DATA": str(cluster.data),
                 "POD_SECRET": str(cluster.folder / secrets[0]["secretName"]) if secrets else "",
                 "POD_READ_ONLY": "yes" if mount.get("readOnly") else "no", "POD_USER": str(security["runAsUser"]),
                 "POD_GROUP": str(security["runAsGroup"]), "POD_WORKING_DIR": container.get("workingDir", "/data")}
        values = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/data", "HOSTNAME": name, **values}
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", link, "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
                 "bash", "-c", SETUP, "setup", *(f"{key}={value}" for key, value in values.items()), *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=setup)
        self.evicted = self.killed = False

    def signal(self, number):
        """To the first process of the pod, which its command is."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if children:
            os.kill(int(children[0]), number)

    def kill(self):
        self.killed = True
        self.signal(signal.SIGKILL)
        return self.process.wait(10)

    def delete(self):
        """SIGTERM, and SIGKILL after the grace period: which would be a failure here. Returns the exit code."""
        self.evicted = True
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(self.grace)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"{self.name} did not stop within terminationGracePeriodSeconds, {self.grace} s") from None

    def probe(self, name):
        """Whether a probe of the file succeeds now."""
        probe = self.container[name]
        timeout = probe.get("timeoutSeconds", 1)
        if "tcpSocket" in probe:
            return is_open(self.address, probe["tcpSocket"]["port"], timeout)
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        return answers(self.address, ports[probe["httpGet"]["port"]], probe["httpGet"]["path"], timeout)

    def is_running(self):
        return self.process.poll() is None

    def await_probe(self, name):
        def passed():
            if not self.is_running():
                raise Failure(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            return self.probe(name)
        wait_for(60, f"{name} of {self.name}", passed)

    def tail(self):
        return "".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines(True)[-15:])


class StatefulSet:
    def __init__(self, cluster, name):
        self.cluster, self.set = cluster, resources(name)["StatefulSet"]
        self.pods = [self._start(i) for i in range(self.set["spec"]["replicas"])]

    def _start(self, index):
        spec = self.set["spec"]
        return Pod(self.cluster, f"{self.set['metadata']['name']}-{index}", spec["template"], spec["serviceName"],
                   labels={"apps.kubernetes.io/pod-index": str(index)})

    def await_ready(self):
        for pod in self.pods:
            pod.await_probe("startupProbe")
            pod.await_probe("readinessProbe")
            if not pod.probe("livenessProbe"):
                raise Failure(f"{pod.name} is ready, but not alive")

    def replace(self, index):
        code = self.pods[index].delete()
        self.pods[index] = self._start(index)
        return code


class Job:
    """An indexed Job with its failure policy."""

    def __init__(self, cluster, name, command=None):
        self.cluster, self.job = cluster, resources(name)["Job"]
        spec = self.job["spec"]
        container = spec["template"]["spec"]["containers"][0]
        if not spec["completions"] == spec["parallelism"] == int(container["env"][0]["value"]):
            raise Failure("the numbers of workers differ")
        if command:
            container["command"] = command
        self.pods = [self._start(i) for i in range(WORKERS)]
        self.ended = {}  # index -> True
        self.restarts = []

    def _start(self, index):
        template = self.job["spec"]["template"]
        return Pod(self.cluster, f"{self.job['metadata']['name']}-{index}", template, template["spec"]["subdomain"],
                   environment={"JOB_COMPLETION_INDEX": str(index)}, replace={"JOB_COMPLETIONS": str(WORKERS)})

    def _action(self, pod):
        code = 137 if pod.killed else pod.process.returncode  # unshare ends with 1 where its child was killed
        for rule in self.job["spec"]["podFailurePolicy"]["rules"]:
            on_code = rule.get("onExitCodes")
            if on_code and on_code["operator"] == "In" and code in on_code["values"]:
                return rule["action"], code
            if "onPodConditions" in rule and pod.evicted:
                return rule["action"], code
        return "Count", code

    def step(self):
        """Looks after the pods, as the controller does. Returns the exit code that failed the Job, or None."""
        for index, pod in enumerate(self.pods):
            if pod.is_running() or index in self.ended:
                continue
            if pod.process.returncode == 0:
                self.ended[index] = True
                continue
            action, code = self._action(pod)
            if action == "FailJob":
                for other in self.pods:
                    if other.is_running():
                        other.delete()
                return code
            self.restarts.append((index, action, code))
            self.pods[index] = self._start(index)
        return None

    def run_until(self, what, condition, seconds=120):
        def reached():
            code = self.step()
            if code is not None:
                raise Failure(f"{what}: the Job failed with {code}:\n" + "".join(pod.tail() for pod in self.pods))
            return condition()
        wait_for(seconds, what, reached)

    def is_complete(self):
        return len(self.ended) == WORKERS


# --- the trial --------------------------------------------------------------------------------------------------------

class Trial:
    def __init__(self, cluster):
        self.cluster = cluster
        self.started = time.monotonic()

    def say(self, text):
        print(f"{time.monotonic() - self.started:4.0f} s  {text}", flush=True)

    def cistern(self, *words):
        done = subprocess.run([self.cluster.programs / "cistern", *map(str, words)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Failure(f"cistern {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def make_secrets(self):
        """The words of the files, and an administrator's certificate for this trial."""
        certs, service = self.cluster.certs, resources("servers.yaml")["StatefulSet"]["spec"]
        hosts = ",".join(f"cistern-server-{i}.{service['serviceName']}" for i in range(service["replicas"]))
        self.cistern("certs", "init", "--certs", certs)
        self.cistern("certs", "issue", "servers", "--role", "server", "--hosts", hosts, "--certs", certs)
        self.cistern("certs", "issue", "train", "--role", "worker", "--certs", certs)
        self.cistern("certs", "issue", "ops", "--role", "admin", "--certs", certs)
        group = service["template"]["spec"]["securityContext"]["fsGroup"]
        self.cluster.make_secret("cistern-servers-tls", "servers", group)
        self.cluster.make_secret("cistern-workers-tls", "train", group)

    def digests(self, servers):
        certs = self.cluster.certs
        addresses = ",".join(f"{pod.name}.{servers.set['spec']['serviceName']}:7700" for pod in servers.pods)
        tables = json.loads(self.cistern(
            "status", "--servers", addresses, "--digest", "--json", "--tls-ca", certs / "ca.crt",
            "--tls-cert", certs / "ops.crt", "--tls-key", certs / "ops.key"))["tables"]
        return sorted((table["name"], table["rows"], table["digest"]) for table in tables)

    def passes(self):
        metrics = self.cluster.data / "runs/train/metrics.jsonl"
        return metrics.read_text().count('"event":"pass"') if metrics.exists() else 0

    def ten_more(self, job, after):
        before = self.passes()
        job.run_until(f"ten more passes after {after}", lambda: self.passes() >= before + 10)
        self.say(f"{after}: pass {self.passes()} is committed")

    def clear(self):
        for folder in ("fleet", "runs"):
            shutil.rmtree(self.cluster.data / folder, ignore_errors=True)

    def stop(self, servers):
        codes = [pod.delete() for pod in servers.pods]
        if codes != [0] * len(codes):
            raise Failure(f"servers stopped with {codes}")

    def train_alone(self):
        servers = StatefulSet(self.cluster, "servers.yaml")
        servers.await_ready()
        self.say("the servers' probes succeed")
        job = Job(self.cluster, "workers.yaml")
        job.run_until("the end of the training", job.is_complete)
        if job.restarts:
            raise Failure(f"workers were restarted: {job.restarts}")
        found = self.digests(servers)
        self.stop(servers)
        self.say(f"a training that was left alone: {found}")
        self.clear()
        return found

    def train_through_failures(self):
        servers = StatefulSet(self.cluster, "servers.yaml")
        job = Job(self.cluster, "workers.yaml")  # at the same time, as kubectl apply does
        self.ten_more(job, "the start")
        code = servers.replace(1)
        if code != 0:
            raise Failure(f"server 1 stopped with {code}")
        self.ten_more(job, f"server 1 was deleted, and replaced at {servers.pods[1].address}")
        job.pods[1].kill()
        self.ten_more(job, "worker 1 was killed")
        job.pods[0].delete()
        self.ten_more(job, "worker 0 was evicted")
        servers.pods[0].kill()
        servers.pods[0] = servers._start(0)  # pylint: disable=protected-access
        self.ten_more(job, "server 0 was killed")
        job.run_until("the end of the training", job.is_complete)
        found = self.digests(servers)
        self.say(f"the training is complete; workers were replaced: {job.restarts}")
        return servers, found

    def fail_at_once(self):
        job = Job(self.cluster, "workers.yaml", command=["cistern-worker", "absent.json"])
        code = None
        end = time.monotonic() + 60
        while code is None and time.monotonic() < end:
            code = job.step()
            time.sleep(0.1)
        if code != 2 or job.restarts:
            raise Failure(f"a Job without a model ended with {code} after {job.restarts}")
        self.say("a Job without a model failed at once, with exit code 2")

    def serve(self):
        self.cistern("export", "serving", self.cluster.data / "model-here.json", "--model", self.cluster.data / "runs/train",
                     "--out", self.cluster.data / "serving")
        deployment = resources("serve.yaml")["Deployment"]
        pods = [Pod(self.cluster, f"cistern-serve-{i}", deployment["spec"]["template"]) for i in range(2)]
        for pod in pods:
            pod.await_probe("livenessProbe")
            pod.await_probe("readinessProbe")
        self.say("two replicas serve the model, from a read-only volume")
        for pod in pods:
            code = pod.delete()
            if code != 0:
                raise Failure(f"{pod.name} stopped with {code}:\n{pod.tail()}")
        self.say("both stopped within their grace period")

    def run(self):
        make_model(self.cistern, self.cluster.folder, self.cluster.data, "/data")
        self.make_secrets()
        expected = self.train_alone()
        servers, found = self.train_through_failures()
        if found != expected:
            raise Failure(f"other bits: {found} instead of {expected}")
        self.say("it has the same bits")
        self.stop(servers)
        here = (self.cluster.data / "model.json").read_text().replace('"/data/', f'"{self.cluster.data}/')
        (self.cluster.data / "model-here.json").write_text(here)
        self.fail_at_once()
        self.serve()


def inside(folder, programs):
    Trial(Cluster(folder, programs)).run()


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, inside, programs=["setpriv"], modules=[("yaml", "pyyaml")]))
