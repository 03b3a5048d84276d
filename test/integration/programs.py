"""Runs the real programs for the integration tests. Uses Python's standard library only.

CISTERN_BIN is the folder of the programs. Servers listen on loopback, on a port that is free.
"""

import functools
import json
import math
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CISTERN_BIN", ROOT / "build/release/bin"))
LIMIT_SECONDS = 120  # limit for one command; far more than any needs


class Result:
    """Exit code and output of a finished program."""

    def __init__(self, process, out, err):
        self.code, self.out, self.err = process.returncode, out, err

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def start(*words, **options):
    return subprocess.Popen(
        [str(BIN / words[0]), *map(str, words[1:])],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options)


def finish(process, seconds=LIMIT_SECONDS):
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"no end after {seconds} s\n{out}\n{err}")
    return Result(process, out, err)


def run(*words, **options):
    return finish(start(*words, **options))


def has_parquet():
    """Whether the programs read Parquet: their build found Arrow."""
    return bool(run("cistern", "version", "--json").json()["parquet"])


def free_ports(count):
    """Ports that nothing uses. Below those that the system gives away, so that no connection takes one meanwhile."""
    ports = set()
    while len(ports) < count:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.add(port)
    return list(ports)


def free_port():
    return free_ports(1)[0]


class Server:
    """One cistern-server process, on a port that it can be restarted on."""

    def __init__(self, rank, count, folder, port=0, flags=(), durability="none", data_dir=None,
                 **options):
        self.log = open(folder / f"server-{rank}-of-{count}.log", "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(BIN / "cistern-server"), f"--rank={rank}", f"--server_num={count}",
             f"--port={port or free_port()}", f"--data_dir={data_dir or folder / 'saved'}",
             f"--durability={durability}",
             *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, **options)
        self.port = self._read_port()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _read_port(self):
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        self.ready = line
        found = re.search(r"port=(\d+) ready", line)
        if not found:
            self.stop()
            said = pathlib.Path(self.log.name).read_text(encoding="utf-8")[-1000:]
            raise AssertionError(f"the server printed no port but {line!r}; its log ends with:\n{said}")
        return int(found.group(1))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process.stdout.close()
        self.log.close()
        return self.process.returncode


class Servers:
    """A fleet, for a `with` statement."""

    def __init__(self, count, folder, **options):
        (folder / "saved").mkdir(exist_ok=True)
        self.all = [Server(rank, count, folder, **options) for rank in range(count)]

    @property
    def addresses(self):
        return ",".join(server.address for server in self.all)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.all:
            server.stop()


class Samples:
    """Synthetic data: SLOTS slots of one or two keys, two dense features, a logistic label."""

    SLOTS, DENSE, KEYS_PER_SLOT = 4, 2, 50

    def __init__(self, count, seed=1):
        draw = random.Random(seed)
        weights = random.Random(99)
        weight = [weights.gauss(0, 1.5) for _ in range(self.SLOTS * self.KEYS_PER_SLOT)]
        self.rows = []
        for _ in range(count):
            keys = [[self._key(slot, draw) for _ in range(draw.randint(1, 2))]
                    for slot in range(self.SLOTS)]
            dense = [draw.uniform(-1, 1) for _ in range(self.DENSE)]
            logit = dense[0] + sum(weight[key - 1] for slot in keys for key in slot) / 2
            label = float(draw.random() < 1 / (1 + math.exp(-logit)))
            self.rows.append((label, dense, keys))

    def _key(self, slot, draw):
        return 1 + slot * self.KEYS_PER_SLOT + draw.randrange(self.KEYS_PER_SLOT)

    def norm(self, check="Sum"):
        """The bytes of a Norm file with 32-bit keys, and the offset of each record in it."""
        content = bytearray(wrapped(struct.pack("<8q", int(check == "Sum"), len(self.rows), 1, self.DENSE,
                                                self.SLOTS, 0, 0, 0), check))
        offsets = []
        for label, dense, keys in self.rows:
            offsets.append(len(content))
            record = struct.pack(f"<{1 + self.DENSE}f", label, *dense)
            for slot in keys:
                record += struct.pack(f"<i{len(slot)}I", len(slot), *slot)
            content += wrapped(record, check)
        return bytes(content), offsets

    def write(self, path, check="Sum"):
        """Writes a Norm file; returns the byte offset of each record."""
        content, offsets = self.norm(check)
        path.write_bytes(content)
        return offsets


@functools.cache
def _norm_of(count, seed):
    return Samples(count, seed).norm()


def write_samples(path, count, seed):
    """Samples(count, seed).write(path), which makes the samples once for all tests of a program."""
    content, offsets = _norm_of(count, seed)
    path.write_bytes(content)
    return offsets


def wrapped(payload, check):
    """A record in the framing of HugeCTR's Norm format."""
    if check != "Sum":
        return payload
    return struct.pack("<i", len(payload)) + payload + bytes([sum(payload) % 256])


def write_list(path, files):
    path.write_text("\n".join([str(len(files)), *map(str, files)]) + "\n", encoding="utf-8")
    return path


def model(train, test, check="Sum"):
    """A small DNN with dropout (randomness that must not depend on the servers), as a dict."""
    return {
        "solver": {"lr_policy": "fixed", "display": 20, "num_epochs": 2, "gpu": [0],
                   "batchsize": 100, "batchsize_eval": 250, "snapshot": 1000000,
                   "snapshot_prefix": "./", "eval_interval": 20, "seed": 7},
        "optimizer": {"type": "Adam", "update_type": "Local",
                      "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999,
                                      "epsilon": 1e-7}},
        "layers": [
            {"name": "data", "type": "Data", "source": str(train), "eval_source": str(test),
             "check": check, "label": {"top": "label", "label_dim": 1},
             "dense": {"top": "dense", "dense_dim": Samples.DENSE},
             "sparse": [{"top": "data1", "type": "DistributedSlot",
                         "max_feature_num_per_sample": 2 * Samples.SLOTS,
                         "slot_num": Samples.SLOTS}]},
            {"name": "deep", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
             "top": "deep",
             "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000,
                                         "embedding_vec_size": 4, "combiner": 0}},
            {"name": "reshape1", "type": "Reshape", "bottom": "deep", "top": "reshape1",
             "leading_dim": 4 * Samples.SLOTS},
            {"name": "concat1", "type": "Concat", "bottom": ["reshape1", "dense"],
             "top": "concat1"},
            {"name": "fc1", "type": "InnerProduct", "bottom": "concat1", "top": "fc1",
             "fc_param": {"num_output": 16}},
            {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
            {"name": "dropout1", "type": "Dropout", "rate": 0.2, "bottom": "relu1",
             "top": "dropout1"},
            {"name": "fc2", "type": "InnerProduct", "bottom": "dropout1", "top": "fc2",
             "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"],
             "top": "loss"},
        ],
    }


class ProgramTest(unittest.TestCase):
    """A test with its own folder, which contains a data set; CISTERN_KEEP_FILES=1 keeps the folder."""

    SAMPLES = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cistern_test_"))
        if not os.environ.get("CISTERN_KEEP_FILES"):
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.train_file = self.folder / "train.norm"
        self.test_file = self.folder / "test.norm"
        self.offsets = write_samples(self.train_file, self.SAMPLES, seed=1)
        write_samples(self.test_file, self.SAMPLES // 4, seed=2)
        self.train_list = write_list(self.folder / "train.txt", [self.train_file])
        self.test_list = write_list(self.folder / "test.txt", [self.test_file])
        self.config = self.folder / "model.json"
        self.write_model()

    def write_model(self, change=lambda content: None):
        content = model(self.train_list, self.test_list)
        change(content)
        self.config.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def expect(self, result, code, *messages):
        self.assertEqual(result.code, code, str(result))
        for message in messages:
            self.assertIn(message, result.err, str(result))
        return result

    def run_ok(self, *words):
        return self.expect(run(*words), 0)


def wait_for(fact, what, seconds=LIMIT_SECONDS):
    """Waits until fact() is true and returns its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = fact()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")
