"""A broker of Kafka for tests: mock-kafka (mock_kafka_main.cc)."""

import subprocess
import unittest

from programs import BIN


class MockKafka:
    """A broker in a process of its own. topics: "NAME:PARTITIONS"."""

    def __init__(self, *topics):
        if not (BIN / "mock-kafka").exists():
            raise unittest.SkipTest("this build has no Kafka")
        self.process = subprocess.Popen([str(BIN / "mock-kafka"), *topics], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.brokers = self.process.stdout.readline().strip().removeprefix("brokers=")

    def send(self, topic, partition, path):
        """Sends the bytes of a file as a message."""
        self.process.stdin.write(f"{topic} {partition} {path}\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ok\n":
            raise AssertionError("the broker did not take a message")

    def close(self):
        self.process.kill()
        self.process.communicate()
