"""A proxy in front of a broker of Kafka, whose topics show some of their partitions only: librdkafka's mock cluster cannot
add partitions to a topic.
"""

import contextlib
import socket
import struct
import threading

METADATA = 3  # the key of its requests
VERSION = 2   # of them, in which mock-kafka answers


class Bytes:
    """The bytes of a response, read from the start."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def take(self, count):
        self.at += count
        return self.content[self.at - count:self.at]

    def number(self):
        return struct.unpack(">i", self.take(4))[0]

    def text(self):
        """With its length, which is -1 for none."""
        head = self.take(2)
        return head + self.take(max(0, struct.unpack(">h", head)[0]))

    def numbers(self):
        """An array of them, with its length."""
        head = self.take(4)
        return head + self.take(4 * struct.unpack(">i", head)[0])


class KafkaProxy:
    """Relays connections to the broker at 127.0.0.1:`broker`, or to none (None). `partitions`: how many a topic shows. Both
    may change any time. `cluster`: the id of the cluster; None: the broker's own, which no other process of it has.
    """

    def __init__(self, broker, partitions, cluster=None):
        self.broker, self.partitions, self.cluster = broker, partitions, cluster
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        for connection in [self.listener, *self.connections]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                try:
                    server = socket.create_connection(("127.0.0.1", self.broker or 0))
                except OSError:
                    client.close()
                    continue
                self.connections += [client, server]
                asked = set()  # the ids of requests for metadata that are not answered yet
                for relay, *ends in ((self.relay_requests, client, server), (self.relay_responses, server, client)):
                    threading.Thread(target=relay, args=(*ends, asked), daemon=True).start()

    @staticmethod
    def frames(source):
        with source.makefile("rb") as stream, contextlib.suppress(OSError):
            while head := stream.read(4):
                yield stream.read(struct.unpack(">i", head)[0])

    @staticmethod
    def send(target, content):
        with contextlib.suppress(OSError):
            target.sendall(struct.pack(">i", len(content)) + content)

    def relay_requests(self, client, server, asked):
        for request in self.frames(client):
            key, version, number = struct.unpack(">hhi", request[:8])
            if key == METADATA:
                assert version == VERSION, version
                asked.add(number)
            self.send(server, request)
        self.send_end(server)

    def relay_responses(self, server, client, asked):
        for response in self.frames(server):
            number = struct.unpack(">i", response[:4])[0]
            if number in asked:
                asked.remove(number)
                response = self.with_few_partitions(response)
            self.send(client, response)
        self.send_end(client)

    @staticmethod
    def send_end(target):
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def with_few_partitions(self, response):
        """Metadata that name the proxy as the broker, and the first partitions of each topic."""
        old = Bytes(response)
        new = old.take(4)
        brokers = old.number()
        new += struct.pack(">i", brokers)
        for _ in range(brokers):
            new += old.take(4) + old.text()  # id, host
            old.number()
            new += struct.pack(">i", self.port) + old.text()  # rack
        cluster = old.text()
        new += cluster if self.cluster is None else struct.pack(">h", len(self.cluster)) + self.cluster.encode()
        new += old.take(4)  # controller
        topics = old.number()
        new += struct.pack(">i", topics)
        for _ in range(topics):
            new += old.take(2) + old.text() + old.take(1)  # error, name, whether it is internal
            partitions = {}
            for _ in range(old.number()):
                error, index = old.take(2), old.take(4)
                partitions[struct.unpack(">i", index)[0]] = error + index + old.take(4) + old.numbers() + old.numbers()
            shown = [content for index, content in sorted(partitions.items()) if index < self.partitions]
            new += struct.pack(">i", len(shown)) + b"".join(shown)
        assert old.at == len(response), "metadata of another version"
        return new
