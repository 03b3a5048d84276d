#!/usr/bin/env python3
"""Trains on three hosts that share no folder; two of them lose their disks, and the fleet moves to new machines.

    scripts/disks_trial.py [--bin DIR] [--keep]

    --bin DIR    folder of the programs                     default build/release/bin
    --keep       keeps the folder with logs, and names it

Each host has a network and a disk of its own, which no program on another host can see. It runs a server with
`--local_state --commit_waits_for=copy`, `cistern ckpt push --follow`, and a worker. A training loses host 1 and its
disk, then host 0 and its disk; each is restored from the copy and the newest manifest of another host, as deploy/README.md
says. It must end with the digests of one that was left alone, and so must a fleet of two new hosts that start from the copy.

Takes about a minute. Needs root, namespaces and openssl; exits with 77 without them. No process and no network device
is left, whatever happens.
"""

import json
import shutil
import sys
import time

from hosts_trial import HOSTS, PEERS, SERVER, Process, Trial, address
from network_trial import Failure, main, make_model, wait_for

# Runs a program on a host: its own disk is at the place of DISK, and those of all hosts are gone.
ON_ITS_DISK = 'mount --bind "$1" "$2" && mount -t tmpfs none "$3" && shift 3 && exec "$@"'


class DisksTrial(Trial):
    def __init__(self, folder, programs):
        super().__init__(folder, programs)
        self.disks, self.disk, self.copy = folder / "disks", folder / "disk", None
        self.disks.mkdir()
        self.disk.mkdir()
        self.pushes = [None] * HOSTS

    def disk_of(self, host):
        return self.disks / f"{self.name}-{host}"

    def on(self, host, name, *words):
        return Process(self, f"host{host}", f"{self.name}-{name}-{host}", "/bin/sh", "-ec", ON_ITS_DISK, "sh",
                       self.disk_of(host), self.disk, self.disks, self.programs / words[0], *words[1:])

    def start_server(self, host, hosts=HOSTS):
        self.disk_of(host).mkdir(exist_ok=True)
        return self.on(host, "server", "cistern-server", f"--rank={host}", f"--server_num={hosts}",
                       f"--bind={address(host)}", f"--port={SERVER}", f"--data_dir={self.disk}", "--local_state",
                       "--commit_waits_for=copy", *self.tls(f"server-{host}", separator="="))

    def start_push(self, host):
        state = self.disk_of(host) / "state/manifest"
        wait_for(30, f"the state of host {host}", state.exists)
        return self.on(host, "push", "cistern", "ckpt", "push", self.disk, "--to", self.copy, "--follow")

    def start_worker(self, host):
        return self.on(host, "worker", "cistern-worker", self.data / "model.json", "--servers", self.addresses, "--out",
                       self.disk / "run", "--rank", host, "--world-size", HOSTS, "--peers", f"{address(0)}:{PEERS}",
                       "--resume", *self.tls(f"worker-{host}"))

    def start(self, name):
        self.name, self.copy = name, self.folder / f"copy-{name}"
        self.servers = [self.start_server(host) for host in range(HOSTS)]
        self.pushes = [self.start_push(host) for host in range(HOSTS)]
        self.workers = [self.start_worker(host) for host in range(HOSTS)]

    def stop(self):
        for process in (*self.servers, *self.pushes):
            process.stop()

    def commit(self):
        """The newest commit that every host has."""
        newest = [max((int(path.name) for path in (self.disk_of(host) / "state/manifest").glob("[0-9]" * 20)), default=0)
                  for host in range(HOSTS)]
        return min(newest)

    def ten_more(self, after):
        before = self.commit()

        def reached():
            if self.ended():
                raise Failure("the training ended before its time")
            return self.commit() >= before + 10

        wait_for(120, f"ten more commits after {after}", reached)
        self.say(f"{after}: commit {self.commit()} is on every disk")

    def pull(self, host, *flags):
        """On the host, whose disk is empty."""
        pulled = self.on(host, "pull", "cistern", "ckpt", "pull", self.copy, "--to", self.disk, "--server", host, *flags)
        if pulled.process.wait(60) != 0:
            raise Failure(f"the copy was not pulled:\n{pulled.tail()}")

    def lose(self, host, helper):
        """The host, with all processes and the disk, and its restoration with the manifest of another host."""
        for process in (self.servers[host], self.pushes[host], self.workers[host]):
            process.kill()
        shutil.rmtree(self.disk_of(host))
        self.disk_of(host).mkdir()
        self.say(f"host {host} is lost, with its disk")
        time.sleep(2)  # long enough for others to see it
        # As scp brings it from another host.
        newest = max((self.disk_of(helper) / "state/manifest").glob("[0-9]" * 20))
        shutil.copy(newest, self.disk_of(host) / "manifest-of-another")
        self.pull(host, "--manifest", self.disk / "manifest-of-another")
        self.servers[host], self.pushes[host] = self.start_server(host), self.start_push(host)
        self.workers[host] = self.start_worker(host)
        self.ten_more(f"host {host} was restored from the copy")

    def train_through_losses(self):
        self.start("lossy")
        self.ten_more("the start")
        self.lose(1, helper=2)
        self.lose(0, helper=1)
        wait_for(240, "the end of the training", self.ended)
        found = self.digests()
        self.stop()
        return found

    def move(self):
        """Two new hosts begin from the copy of three."""
        copy, self.name = self.copy, "moved"
        for host in range(2):
            self.disk_of(host).mkdir()
            self.copy = copy
            self.pull(host, "--server-num", 2)
        self.servers = [self.start_server(host, hosts=2) for host in range(2)]
        self.pushes = [self.start_push(host) for host in range(2)]
        addresses = ",".join(f"{address(host)}:{SERVER}" for host in range(2))
        wait_for(60, "the new servers", lambda: self.run(
            "host0", "status", "--servers", addresses, "--timeout", 5, *self.tls("analyst")).returncode == 0)
        tables = json.loads(self.cistern("status", "--servers", addresses, "--digest", "--json", *self.tls("analyst")))["tables"]
        self.stop()
        return sorted((table["name"], table["rows"], table["digest"]) for table in tables)

    def run_all(self):
        make_model(self.cistern, self.folder, self.data, self.data)
        self.make_certificates()
        self.start("alone")
        wait_for(240, "the end of the training", self.ended)
        expected = self.digests()
        self.stop()
        self.say(f"a training that was left alone: {expected}")
        for what, found in (("the training that lost two disks", self.train_through_losses()),
                            ("the fleet of two new hosts", self.move())):
            if found != expected:
                raise Failure(f"{what}: other bits: {found} instead of {expected}")
            self.say(f"{what} has the same bits")


def inside(folder, programs):
    DisksTrial(folder, programs).run_all()


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, inside, programs=["openssl"]))
