"""kill -9 of workers, servers, the publisher and the broker, while messages arrive: every sample is trained once.

CISTERN_KILLS: how many rounds (default 8), each with new messages and one kill; CISTERN_SEED: of what, and when. 200
rounds take some minutes.
"""

import collections
import os
import random
import signal
import subprocess
import time
import unittest

from kafka_proxy import KafkaProxy
from mock_kafka import OWN, MockKafka
from programs import BIN, Samples, Server, Servers, finish, start, wait_for
from workers import WorkersTest

KILLS = int(os.environ.get("CISTERN_KILLS", "8"))
SEED = int(os.environ.get("CISTERN_SEED", str(time.time_ns() % 1000000)))
PARTITIONS, WORKERS, SERVERS = 3, 2, 2


class OwnBroker:
    """The broker of CISTERN_KAFKA, which is not killed."""

    def __init__(self, folder):
        self.folder, self.messages = folder, []
        self.kafka = MockKafka(f"clicks:{PARTITIONS}")
        self.source = self.kafka.source("clicks")

    def close(self):
        self.kafka.close()

    def send(self, samples, partition):
        path = self.folder / f"{len(self.messages):06}.norm"
        samples.write(path)
        self.messages.append((partition, path))
        self.kafka.send("clicks", partition, path)


class Broker(OwnBroker):
    """A broker that keeps its messages when it is killed: the next process has them at the same offsets."""

    def __init__(self, folder):
        self.folder, self.messages = folder, []
        self.proxy = KafkaProxy(None, PARTITIONS, cluster="the-cluster")
        self.source = f"kafka://127.0.0.1:{self.proxy.port}/clicks"
        self.begin()

    def begin(self):
        self.kafka = MockKafka(f"clicks:{PARTITIONS}")
        for partition, path in self.messages:
            self.kafka.send("clicks", partition, path)
        self.proxy.broker = int(self.kafka.brokers.split(":")[1])

    def kill(self):
        self.proxy.broker = None
        self.kafka.close()

    def close(self):
        self.kill()
        self.proxy.close()


class StreamKillsTest(WorkersTest):

    def setUp(self):
        super().setUp()
        print(f"CISTERN_SEED={SEED}", flush=True)
        self.draw = random.Random(SEED)
        self.shows, self.clicks, self.samples = collections.Counter(), collections.Counter(), 0
        self.write_model(self.change)
        (self.folder / "messages").mkdir()
        self.broker = (OwnBroker if OWN else Broker)(self.folder / "messages")
        self.addCleanup(lambda: self.broker.close())
        self.properties = self.folder / "properties"
        self.properties.write_text("reconnect.backoff.max.ms=100\n", encoding="utf-8")

    @staticmethod
    def change(content):
        """Rows count the samples that they were trained with."""
        content["solver"].update(num_epochs=1, batchsize=50, eval_interval=0)
        content["cistern"] = {"embeddings": {"deep": {
            "accessor": "ctr", "embedx_threshold": 2, "optimizer": {"type": "AdaGradShared", "learning_rate": 0.05}}}}

    def send_some(self):
        for _ in range(self.draw.randint(1, 3)):
            samples = Samples(self.draw.randint(1, 120), seed=1000 + len(self.broker.messages))
            self.broker.send(samples, self.draw.randrange(PARTITIONS))
            self.samples += len(samples.rows)
            for label, _, slots in samples.rows:
                for key in (key for slot in slots for key in slot):
                    self.shows[key] += 1
                    self.clicks[key] += label

    def server(self, rank, port=0):
        return Server(rank, SERVERS, self.folder, port=port, durability="commit")

    def run_workers(self, *flags):
        self.workers = self.start_workers(
            "run", self.servers, WORKERS, "--stream", self.broker.source,
            "--recovery-limit", 120, "--set", "cistern.stream.seconds=0", "--set", "cistern.commit_every=1", "--set",
            f"cistern.stream.properties={self.properties}", *flags)

    def publish(self):
        with open(self.folder / "publish.log", "ab") as log:
            self.publisher = subprocess.Popen(
                [str(BIN / "cistern"), "publish", self.config, "--follow", self.folder / "saved", "--out",
                 self.folder / "serving", "--poll-ms", "20"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.end, self.publisher)

    def kill_worker(self):
        self.workers[self.draw.randrange(WORKERS)].kill()
        for worker in self.workers:
            self.end(worker)
        self.run_workers("--resume")

    def kill_server(self):
        rank = self.draw.randrange(SERVERS)
        old = self.servers.all[rank]
        old.kill()
        old.stop()
        self.servers.all[rank] = self.server(rank, old.port)

    def kill_publisher(self):
        self.assertIsNone(self.publisher.poll())
        self.end(self.publisher)
        self.publish()

    def kill_broker(self):
        self.broker.kill()
        time.sleep(self.draw.uniform(0, 0.3))
        self.broker.begin()

    def test_every_sample_is_trained_once(self):
        kills = collections.Counter()
        victims = {"worker": self.kill_worker, "server": self.kill_server, "publisher": self.kill_publisher,
                   "broker": self.kill_broker}
        if OWN:
            del victims["broker"]
        with Servers(0, self.folder) as self.servers:
            self.servers.all = [self.server(rank) for rank in range(SERVERS)]
            self.send_some()
            self.run_workers()
            self.await_passes("run", 1, self.workers)
            self.publish()
            for _ in range(KILLS):
                before = self.passes("run")
                self.send_some()
                self.await_passes("run", before + 1, self.workers)
                self.assertEqual([worker.poll() for worker in self.workers], [None] * WORKERS)
                self.send_some()
                time.sleep(self.draw.uniform(0, 0.15))
                victim = self.draw.choice(sorted(victims))
                victims[victim]()
                kills[victim] += 1
            for worker in self.workers:
                self.end(worker)
            self.run_workers("--resume", "--once")
            for worker in self.workers:
                self.expect(finish(worker), 0)
            found = {int(key): row[3:5] for key, row in self.saved_rows().items()}
        self.assertEqual(found, {key: [float(count), float(self.clicks[key])] for key, count in self.shows.items()})
        self.expect_published()
        print(f"{KILLS} kills: {dict(sorted(kills.items()))}; {len(self.broker.messages)} messages, {self.samples} samples, "
              f"{self.passes('run')} passes", flush=True)

    def saved_rows(self):
        model = self.folder / "run" / "model"
        files = {str(path.relative_to(model)): path.read_bytes() for path in model.rglob("part-*") if path.suffix != ".json"}
        return self.rows(files, "deep")

    def expect_published(self):
        """The publisher reaches the last commit, and its versions are whole."""
        last = self.run_ok("cistern", "ckpt", "ls", self.folder / "saved" / "state", "--json").json()["commits"][-1]["commit"]
        serving = self.folder / "serving"

        def newest():
            return self.run_ok("cistern", "serving", "ls", serving, "--json").json()["versions"][-1]["commit"]
        wait_for(lambda: newest() == last or self.publisher.poll() is not None, "the last version")
        self.publisher.send_signal(signal.SIGTERM)
        self.assertEqual(self.publisher.wait(), 0)
        self.assertEqual(newest(), last)
        self.run_ok("cistern", "serving", "verify", serving)


if __name__ == "__main__":
    unittest.main()
