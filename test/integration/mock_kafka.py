"""A broker of Kafka for tests: mock-kafka (mock_kafka_main.cc).

CISTERN_KAFKA=HOST:PORT names a broker that runs: tests make topics of their own there, and leave them behind. What needs
a broker that can be killed, or shows fewer partitions than it has, is skipped.
"""

import os
import subprocess
import time
import unittest

from programs import BIN

OWN = os.environ.get("CISTERN_KAFKA", "")


def need_mock(why):
    if OWN:
        raise unittest.SkipTest(f"CISTERN_KAFKA is set: {why}")


class MockKafka:
    """A broker in a process of its own, or a producer for that of CISTERN_KAFKA. topics: "NAME:PARTITIONS"."""

    def __init__(self, *topics):
        if not (BIN / "mock-kafka").exists():
            raise unittest.SkipTest("this build has no Kafka")
        self.suffix = f"-cistern-test-{time.time_ns()}" if OWN else ""
        flags = [f"--brokers={OWN}"] if OWN else []
        names = [topic.replace(":", f"{self.suffix}:") for topic in topics]
        self.process = subprocess.Popen([str(BIN / "mock-kafka"), *flags, *names], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=None if OWN else subprocess.DEVNULL, text=True)
        self.brokers = self.process.stdout.readline().strip().removeprefix("brokers=")
        if not self.brokers:
            raise AssertionError("there is no broker")

    def name(self, topic):
        """Of a topic, as the broker has it."""
        return topic + self.suffix

    def source(self, topic):
        return f"kafka://{self.brokers}/{self.name(topic)}"

    def send(self, topic, partition, path):
        """Sends the bytes of a file as a message."""
        self.process.stdin.write(f"{self.name(topic)} {partition} {path}\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ok\n":
            raise AssertionError("the broker did not take a message")

    def close(self):
        self.process.kill()
        self.process.communicate()
