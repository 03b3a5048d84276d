"""Messages of a topic: lines, JSON objects and Arrow streams.

Needs pyarrow (build/pyarrow has it), and a cistern with Arrow and Kafka: otherwise it is skipped.
"""

import json
import random
import shutil
import sys
import unittest

from mock_kafka import MockKafka
from programs import ROOT, has_parquet, run
from workers import WorkersTest

sys.path.append(str(ROOT / "build/pyarrow"))
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


class MessagesTest(WorkersTest):
    """Rows in messages of any form train the same model as a Parquet file of them."""

    def setUp(self):
        super().setUp()
        if pyarrow is None or not has_parquet():
            self.skipTest("needs pyarrow, and a cistern with Arrow")
        self.kafka = MockKafka("lines:1", "objects:1", "batches:1")
        self.addCleanup(self.kafka.close)
        draw = random.Random(7)
        rows = [(int(draw.random() < 0.5), f"i{draw.randrange(30)}", draw.choice([None, draw.randrange(100) / 8]),
                 [f"t{k}" for k in range(draw.randrange(4))]) for _ in range(900)]
        day = self.folder / "day.csv"
        day.write_text("click,item,price,tags\n" + "".join(self.line(row) for row in rows[:500]), encoding="utf-8")
        self.run_ok("cistern", "train", day, "--out", self.folder / "base", "--min-count", 1, "--multi", "tags", "--separator",
                    ";", "--set", "solver.num_epochs=1")
        self.rows = rows[500:]

    @staticmethod
    def line(row):
        click, item, price, tags = row
        return f"{click},{item},{'' if price is None else price},{';'.join(tags)}\n"

    @staticmethod
    def table(rows):
        click, item, price, tags = zip(*rows)
        return pyarrow.table({"tags": tags, "item": pyarrow.array(item).dictionary_encode(), "other": [{"x": 1}] * len(rows),
                              "price": pyarrow.array(price, pyarrow.float64()), "click": pyarrow.array(click, pyarrow.int8())})

    def batches(self, rows):
        table = self.table(rows)
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
        return sink.getvalue().to_pybytes()

    def send(self, topic, content):
        message = self.folder / "message"
        message.write_bytes(content)
        self.kafka.send(topic, 0, message)

    def stream(self, name, source, *flags):
        out = self.folder / name
        if not out.exists():
            shutil.copytree(self.folder / "base", out)
        return ["cistern", "train", out, "--stream", source, "--once", "--json", *flags]

    def model(self, name):
        folder = self.folder / name / "model"
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("part-*"))
                if path.suffix != ".json"}

    def test_every_form_gives_the_same_bits(self):
        for first in (0, 250):
            rows = self.rows[first:first + 250]
            self.send("lines", "".join(map(self.line, rows)).encode())
            self.send("objects", "".join(json.dumps(dict(zip(("click", "item", "price", "tags"), row))) + "\n"
                                         for row in rows).encode())
            self.send("batches", self.batches(rows))
        table = self.folder / "in"
        table.mkdir()
        pyarrow.parquet.write_table(self.table(self.rows), table / "a.parquet")
        summary = self.run_ok(*self.stream("parquet", table)).json()
        self.assertEqual(summary["samples"], 400)
        expected = self.model("parquet")
        for topic in ("lines", "objects", "batches"):
            self.run_ok(*self.stream(topic, self.kafka.source(topic)))
            self.assertEqual(self.model(topic), expected, topic)

    def test_names_the_place_of_an_arrow_message_that_lies(self):
        whole = self.batches(self.rows[:250])
        self.send("batches", whole)
        self.send("batches", whole[:-8])
        words = self.stream("batches", self.kafka.source("batches"))
        self.expect(run(*words), 4, f"{self.kafka.name('batches')}/0: offset 1: row 250: is cut short")
        self.expect(run(*words, "--set", "cistern.on_bad_data=skip"), 0)


if __name__ == "__main__":
    unittest.main()
