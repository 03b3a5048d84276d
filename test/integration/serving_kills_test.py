"""kill -9 of the publisher and of the server, while a training commits and clients ask: no answer is of
a torn version, and no commit number goes down.

CISTERN_KILLS is the number of kills (default 8). Prints the seed, which CISTERN_SEED sets."""

import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest

from programs import BIN, ProgramTest, Samples, finish, run, start, wait_for
from serve_test import json_body
from serving_library import Model

KILLS = int(os.environ.get("CISTERN_KILLS", "8"))
SEED = int(os.environ.get("CISTERN_SEED", random.randrange(1 << 32)))
PAUSE = 0.4  # the longest time from kill to kill, in seconds


def quiet(*words):
    """Starts a program whose output nobody reads."""
    return subprocess.Popen([str(BIN / words[0]), *map(str, words[1:])], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Client(threading.Thread):
    """Asks for predictions of the same samples all the time, and keeps the answers by commit."""

    def __init__(self, samples):
        super().__init__()
        self.body = json_body(samples)
        self.address, self.stopping = None, False
        self.answers, self.last, self.count, self.failure = {}, 0, 0, None

    def run(self):
        connection, address = None, None
        while not self.stopping and self.failure is None:
            try:
                if connection is None or self.address != address:
                    if connection is not None:
                        connection.close()
                    address = self.address
                    connection = http.client.HTTPConnection(address, timeout=60)
                connection.request("POST", "/v2/models/model/infer", self.body)
                reply = connection.getresponse()
                status, text = reply.status, reply.read()
            except (OSError, http.client.HTTPException):  # the server was killed
                connection.close()
                connection = None
                time.sleep(0.001)
                continue
            self.failure = self.check(status, text)
        if connection is not None:
            connection.close()

    def check(self, status, text):
        """The reason why the answer is wrong; None."""
        if status != 200:
            return f"status {status}: {text}"
        reply = json.loads(text)
        commit = int(reply["model_version"])
        data = reply["outputs"][0]["data"]
        if commit < self.last:
            return f"commit {commit} after {self.last}"
        self.last, self.count = commit, self.count + 1
        if self.answers.setdefault(commit, data) != data:
            return f"two answers of commit {commit}"
        return None


class ServingKills(ProgramTest):

    def test_no_version_is_torn_and_no_commit_goes_down(self):
        print(f"seed {SEED}", flush=True)
        draw = random.Random(SEED)
        self.state, self.serving = self.folder / "run", self.folder / "serving"
        self.samples = Samples(self.SAMPLES // 4, seed=2).rows[:20]
        training = quiet("cistern", "train", self.config, "--out", self.state, "--durability",
                         "commit", "--threads", 1, "--set", "cistern.pass_memory_mb=1", "--set",
                         "solver.num_epochs=1000000")
        self.addCleanup(training.kill)
        wait_for((self.state / "state").is_dir, "a commit")
        publisher = self.publish()
        wait_for((self.serving / "HEAD").exists, "a version")
        client = Client(self.samples)
        server = self.serve(client)
        client.start()
        self.addCleanup(setattr, client, "stopping", True)
        killed = {"publisher": 0, "server": 0}
        for _ in range(KILLS):
            time.sleep(draw.uniform(0, PAUSE))
            if draw.random() < 0.5:
                publisher.kill()
                publisher.wait()
                publisher = self.publish()
                killed["publisher"] += 1
            else:
                server.kill()
                finish(server)
                server = self.serve(client)
                killed["server"] += 1
            self.assertIsNone(client.failure)
            self.assertIsNone(training.poll())
        training.send_signal(signal.SIGINT)
        training.wait()
        last = max(commit["commit"] for commit in
                   run("cistern", "ckpt", "ls", self.state, "--json").json()["commits"])
        wait_for(lambda: client.failure is not None or client.last == last, f"commit {last}")
        client.stopping = True
        client.join()
        self.assertIsNone(client.failure)
        server.terminate()
        self.expect(finish(server), 0)
        publisher.send_signal(signal.SIGINT)
        self.assertEqual(publisher.wait(), 0)
        print(f"kills: {killed['publisher']} of the publisher, {killed['server']} of the server; "
              f"{client.count} answers of {len(client.answers)} commits", flush=True)
        self.run_ok("cistern", "serving", "verify", self.serving)
        whole = self.folder / "whole"
        self.run_ok("cistern", "export", "serving", self.config, "--state", self.state, "--out",
                    whole)
        with Model(whole) as model:
            predictions, commit = model.predict(self.samples)
        self.assertEqual(commit, last)
        self.assertEqual([float(f"{p:.9g}") for p in predictions],
                         [float(f"{p:.9g}") for p in client.answers[last]])

    def publish(self):
        process = quiet("cistern", "publish", self.config, "--follow", self.state, "--out",
                        self.serving, "--poll-ms", 5)
        self.addCleanup(process.kill)
        return process

    def serve(self, client):
        """Starts a server, tells the client, and checks the commit that it begins with."""
        process = start("cistern", "serve", self.serving, "--port", 0, "--grpc-port", 0, "--json",
                        "--poll-ms", 5, "--drain-seconds", 0)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        if not line:
            self.fail(finish(process))
        ready = json.loads(line)
        self.assertGreaterEqual(ready["commit"], client.last)
        client.address = ready["http"]
        return process


if __name__ == "__main__":
    unittest.main()
