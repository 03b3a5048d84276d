"""What trials share that run several hosts on this machine: each host has a network of its own, all hang on one bridge,
and everything is gone when the trial ends. Imported by kubernetes_trial.py, hosts_trial.py and disks_trial.py, which say
what is tried.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BRIDGE = "hosts"


class Failure(Exception):
    """The trial has failed; the text says why."""


def wait_for(seconds, what, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def make_network(network):
    """The bridge, at NETWORK.1."""
    ip("link", "set", "lo", "up")
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{network}.1/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")


def add_host(name, address):
    """A network that `ip netns exec NAME` runs programs in. name: at most 15 letters."""
    ip("netns", "add", name)
    ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", name, "master", BRIDGE, "up")
    ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
    ip("-n", name, "link", "set", "lo", "up")


def make_model(cistern, folder, data, seen_as):
    """DATA/model.json, the demo's model for 300 short passes, which finds its data at `seen_as`.

    cistern: runs the command with the words that it gets. folder: for the demo's other files."""
    cistern("demo", "--samples", 4000, "--dir", folder / "demo")
    shutil.move(folder / "demo/data", data / "data")
    text = (folder / "demo/deepfm.json").read_text(encoding="utf-8")
    model = json.loads(text.replace(str(folder / "demo"), str(seen_as)))
    model["solver"]["num_epochs"] = 300
    (data / "model.json").write_text(json.dumps(model), encoding="utf-8")
    for listing in (data / "data").rglob("file_list.txt"):
        listing.write_text(listing.read_text(encoding="utf-8").replace(str(folder / "demo"), str(seen_as)),
                           encoding="utf-8")


def main(path, description, inside, programs=(), modules=()):
    """Runs `inside(folder, bin)` as root in namespaces of its own, and ends every process that it leaves. The exit code:
    1 after a Failure, 77 where this machine cannot.

    path: of the trial. programs, modules: what it needs besides."""
    trial = pathlib.Path(path).stem

    def skip(why):
        print(f"{trial}: skipped: {why}", file=sys.stderr)
        return 77

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("CISTERN_BIN", ROOT / "build/release/bin"), type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)
    words = parser.parse_args()
    bin_folder = words.bin.resolve()
    if words.inside:
        try:
            inside(words.inside, bin_folder)
            return 0
        except Failure as failure:
            print(f"{trial}: FAILED: {failure}", file=sys.stderr)
            return 1
    if os.geteuid() != 0:
        return skip("needs root")
    for module, package in modules:
        try:
            __import__(module)
        except ImportError:
            return skip(f"no {module}: pip install {package}")
    for program in ("ip", "unshare", *programs):
        if not shutil.which(program):
            return skip(f"no {program}: apt-get install iproute2 util-linux openssl")
    namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    tried = subprocess.run([*namespaces, "sh", "-ec", f"mount -t tmpfs tmpfs /run && ip link add {BRIDGE} type bridge"],
                           capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return skip(f"this machine allows no namespaces or bridges: {tried.stderr.strip()}")
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    # A /run of its own for the names of networks.
    process = subprocess.Popen([*namespaces, "sh", "-ec", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh", sys.executable,
                                path, "--bin", bin_folder, "--inside", folder])
    signal.signal(signal.SIGTERM, lambda *_: process.kill())  # unshare ignores it; its child dies with it
    try:
        return process.wait()
    finally:
        process.kill()
        if words.keep:
            print(f"{trial}: logs are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
