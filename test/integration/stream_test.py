"""Trains on data that never ends: the files of a growing folder, or the messages of a topic, are all trained once,
whatever is killed.

CISTERN_KILLS: how many processes are killed in each test (default 6); CISTERN_SEED: when.
"""

import collections
import json
import os
import random
import shutil
import signal
import threading
import time
import unittest

from kafka_proxy import KafkaProxy
from mock_kafka import MockKafka, need_mock
from programs import Samples, Server, Servers, finish, run, start, wait_for, write_list
from workers import WorkersTest

KILLS = int(os.environ.get("CISTERN_KILLS", "6"))
SEED = int(os.environ.get("CISTERN_SEED", str(time.time_ns() % 1000000)))


class Streams(WorkersTest):
    """What holds for every source. `source` is what --stream names."""

    FILES, ROWS = 12, 370

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.written = []  # the samples of all files
        self.write_model(self.change)
        self.open_source()

    @staticmethod
    def change(content):
        """Rows count the samples that they were trained with."""
        content["solver"].update(num_epochs=1, batchsize=50, eval_interval=0)
        content["cistern"] = {"embeddings": {"deep": {
            "accessor": "ctr", "embedx_threshold": 2, "optimizer": {"type": "AdaGradShared", "learning_rate": 0.05}}}}

    def add_file(self, name, count=None):
        samples = Samples(count or self.random.randint(1, 2 * self.ROWS), seed=1000 + len(self.written))
        samples.write(self.folder / "unfinished")
        self.deliver(self.folder / "unfinished", name)
        self.written.extend(samples.rows)
        return samples

    def add_files(self, count=None):
        for i in range(count or self.FILES):
            self.add_file(f"{i:03}.norm")

    def words(self, out, *flags):
        return ["cistern", "train", self.config, "--out", self.folder / out, "--stream", self.source, "--threads", 1,
                "--set", "cistern.stream.samples=600", "--json", *flags]

    def train(self, out, *flags):
        return self.expect(run(*self.words(out, *flags)), 0).json()

    def model(self, out):
        folder = self.folder / out / "model"
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("part-*"))
                if path.suffix != ".json"}

    def expect_each_sample_once(self, out):
        """The shows and clicks of every row are those of the data."""
        shows, clicks = collections.Counter(), collections.Counter()
        for label, _, slots in self.written:
            for key in (key for slot in slots for key in slot):
                shows[key] += 1
                clicks[key] += label
        found = {int(key): row[3:5] for key, row in self.rows(self.model(out), "deep").items()}
        self.assertEqual(found, {key: [float(count), float(clicks[key])] for key, count in shows.items()})

    def test_bits_are_those_of_files(self):
        self.write_model(lambda content: content["solver"].update(num_epochs=1, batchsize=50, eval_interval=0))
        files = []
        for i in range(4):
            files.append(self.folder / f"copy-{i}.norm")
            self.add_file(f"{i:03}.norm", 150).write(files[-1])
        self.train("stream", "--once", "--set", "cistern.stream.samples=250")
        write_list(self.train_list, files)
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "files", "--threads", 1)
        self.assertEqual(self.model("stream"), self.model("files"))
        self.assertEqual(self.passes("stream"), 3)

    def test_kills_change_no_bit(self):
        self.add_files()
        self.train("whole", "--once")
        self.train_with_kills("killed")
        self.assertEqual(self.model("killed"), self.model("whole"), f"CISTERN_SEED={SEED}")
        self.expect_each_sample_once("killed")

    def train_with_kills(self, out):
        killed = 0
        while True:
            process = start(*self.words(out, "--once", "--set", "cistern.commit_every=1"))
            self.addCleanup(self.end, process)
            if killed == KILLS:
                self.expect(finish(process), 0)
                break
            passes = self.passes(out)
            wait_for(lambda: self.passes(out) > passes or process.poll() is not None, "a pass")
            time.sleep(self.random.uniform(0, 0.03))
            process.kill()
            process.communicate()
            killed += 1

    def test_every_sample_counts_once_while_files_arrive(self):
        """Files come in any order of their names, while the training is killed or stopped."""
        names = [f"{i:03}.norm" for i in range(3 * self.FILES)]
        self.random.shuffle(names)
        done = threading.Event()

        def write():
            for name in names:
                self.add_file(name)
                time.sleep(0.03)
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        stops = 0
        while not done.is_set() or stops < KILLS:
            process = start(*self.words("run", "--set", "cistern.stream.seconds=0.05"))
            self.addCleanup(self.end, process)
            passes = self.passes("run")
            wait_for(lambda: self.passes("run") > passes or done.is_set(), "a pass")
            time.sleep(self.random.uniform(0, 0.1))
            how = self.random.choice([signal.SIGKILL, signal.SIGTERM])
            process.send_signal(how)
            process.communicate()
            if how == signal.SIGTERM:
                self.assertIn(process.returncode, (130, -signal.SIGTERM))
            stops += 1
        self.train("run", "--once")
        self.expect_each_sample_once("run")

    def test_a_worker_is_lost_and_their_number_changes(self):
        self.add_files()
        flags = ("--stream", self.source, "--once", "--set", "cistern.streams=3", "--set", "cistern.stream.samples=600")
        with Servers(2, self.folder, durability="commit", data_dir=self.folder / "state") as servers:
            workers = self.start_workers_of(servers, 2, *flags)
            self.await_passes("fleet", 2, workers)
            workers[1].kill()
            workers[1].communicate()
            for worker in workers:
                self.end(worker)
            # Three workers, instead of two, continue.
            workers = self.start_workers_of(servers, 3, *flags, "--resume")
            for worker in workers:
                self.expect(finish(worker), 0)
        self.expect_each_sample_once("fleet")

    def start_workers_of(self, servers, count, *flags):
        words = super().words
        self.peers = f"127.0.0.1:{20000 + self.random.randrange(12000)}"
        workers = [start(*words("fleet", servers, rank, count, self.peers, *flags)) for rank in range(count)]
        for worker in workers:
            self.addCleanup(self.end, worker)
        return workers

    def test_a_stream_continues_after_other_data(self):
        self.add_files(3)
        self.train("run", "--once")
        more = self.folder / "more.norm"
        samples = Samples(100, seed=77)
        samples.write(more)
        self.written.extend(samples.rows)
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run", "--resume", "--more", more)
        self.add_file("after.norm")
        self.train("run", "--once")
        self.expect_each_sample_once("run")

    def test_stops_while_it_waits(self):
        self.add_files(2)
        process = start(*self.words("run", "--set", "cistern.stream.seconds=0"))
        self.addCleanup(self.end, process)
        self.await_passes("run", 1, [process])
        process.send_signal(signal.SIGTERM)
        self.expect(finish(process), 130, "interrupted")
        self.train("run", "--once")
        self.expect_each_sample_once("run")


class FolderStreamTest(Streams):

    def open_source(self):
        self.source = self.folder / "in"
        self.source.mkdir()

    def deliver(self, path, name):
        path.rename(self.source / name)

    def test_files_that_change_are_refused(self):
        self.add_file("000.norm", 5000)  # more than is read before the kill
        grown = self.source / "000.norm"
        process = start(*self.words("run", "--set", "cistern.stream.samples=20"))
        self.addCleanup(self.end, process)
        self.await_passes("run", 1, [process])
        process.kill()
        process.communicate()
        grown.write_bytes(grown.read_bytes() + b"x")
        self.expect(run(*self.words("run", "--once")), 4, "000.norm", "must not change")


class KafkaStreamTest(Streams):
    """Messages are whole Norm files."""

    PARTITIONS = 1

    def open_source(self):
        self.kafka = MockKafka(f"clicks:{self.PARTITIONS}")
        self.addCleanup(self.kafka.close)
        self.brokers = self.kafka.brokers
        self.source = self.kafka.source("clicks")

    def deliver(self, path, name):
        self.send(len(self.written) % self.PARTITIONS, path)

    def send(self, partition, path):
        self.kafka.send("clicks", partition, path)


class KafkaPartitionsTest(KafkaStreamTest):

    PARTITIONS = 3

    test_bits_are_those_of_files = None  # batches take equal parts of the partitions

    def test_kills_change_no_bit(self):
        """A slice takes what has arrived of each partition, so on a busy machine two runs can cut other slices."""
        self.add_files()
        for attempt in range(3):
            self.train(f"whole-{attempt}", "--once")
            self.train_with_kills(f"killed-{attempt}")
            self.expect_each_sample_once(f"killed-{attempt}")
            if self.model(f"killed-{attempt}") == self.model(f"whole-{attempt}"):
                return
        self.fail(f"three runs with kills ended with other bits than runs without; CISTERN_SEED={SEED}")

    def test_workers_add_up_the_messages_that_they_leave_out(self):
        self.add_files()
        bad = self.folder / "bad"
        bad.write_text("no Norm file")
        for partition in range(self.PARTITIONS):
            self.send(partition, bad)
        with Servers(1, self.folder) as servers:
            workers = self.start_workers_of(servers, 2, "--stream", self.source, "--once", "--set", "cistern.on_bad_data=skip")
            summaries = [self.expect(finish(worker), 0).json() for worker in workers]
        self.assertEqual(sum(summaries[0]["skipped_data"].values()), self.PARTITIONS)
        self.expect_each_sample_once("fleet")


class AddedPartitionsTest(KafkaStreamTest):
    """Partitions are added to the topic while it is read."""

    PARTITIONS, ROWS = 4, 100

    test_bits_are_those_of_files = test_kills_change_no_bit = test_stops_while_it_waits = None
    test_a_stream_continues_after_other_data = test_a_worker_is_lost_and_their_number_changes = None

    def open_source(self):
        need_mock("its topics show all partitions")
        super().open_source()
        self.delivered = 0
        self.proxy = KafkaProxy(int(self.brokers.split(":")[1]), partitions=1)
        self.addCleanup(self.proxy.close)
        self.source = f"kafka://127.0.0.1:{self.proxy.port}/clicks"

    def show(self, partitions):
        """All partitions hold messages; the feed sees so many."""
        self.proxy.partitions = partitions

    def deliver(self, path, name):
        """Of three times FILES files, a quarter is there before one partition more is shown."""
        super().deliver(path, name)
        self.delivered += 1
        self.show(min(self.PARTITIONS, 1 + self.delivered * 4 // (3 * self.FILES)))

    def await_note(self, out, text, process):
        wait_for(lambda: process.poll() is not None or text in (self.folder / out / "metrics.jsonl").read_text(), text)
        self.assertIsNone(process.poll())

    def start_run(self):
        process = start(*self.words("run", "--set", "cistern.stream.seconds=0"))
        self.addCleanup(self.end, process)
        return process

    def test_they_are_read_while_the_run_goes_on(self):
        """Also if it is killed meanwhile."""
        self.add_files(3 * self.PARTITIONS)
        self.show(1)
        process = self.start_run()
        self.await_passes("run", 1, [process])
        self.show(2)
        self.await_note("run", "clicks/1 is a new partition", process)
        time.sleep(self.random.uniform(0, 0.1))
        process.kill()
        process.communicate()
        self.show(3)
        process = self.start_run()
        self.await_note("run", "clicks/2 ", process)
        self.show(4)
        self.await_note("run", "clicks/3 is a new partition", process)
        process.send_signal(signal.SIGTERM)
        self.expect(finish(process), 130, "interrupted")
        self.train("run", "--once")
        self.expect_each_sample_once("run")

    def test_several_workers_divide_them_anew(self):
        self.add_files(3 * self.PARTITIONS)
        self.show(1)
        flags = ("--stream", self.source, "--set", "cistern.stream.samples=100", "--set", "cistern.stream.seconds=0")
        with Servers(2, self.folder, durability="commit", data_dir=self.folder / "state") as servers:
            workers = self.start_workers_of(servers, 2, *flags)
            self.await_passes("fleet", 1, workers)
            self.show(3)
            self.await_note("fleet", "clicks/1, clicks/2 are new partitions", workers[0])
            self.await_passes("fleet", self.passes("fleet") + 1, workers)
            workers[1].kill()
            workers[1].communicate()
            for worker in workers:
                self.end(worker)
            self.show(4)
            for worker in self.start_workers_of(servers, 3, *flags, "--once", "--resume"):
                self.expect(finish(worker), 0)
        self.expect_each_sample_once("fleet")


del Streams  # unittest would run it, too


class DriftingSamples(Samples):
    """Samples whose keys are those of a window of ids, which moves from file to file."""

    def __init__(self, count, window):
        super().__init__(count, seed=500 + window)
        self.rows = [(label, dense, [[key + 1000 * slot + 20 * window for key in keys] for slot, keys in enumerate(slots)])
                     for label, dense, slots in self.rows]


class BoundedTablesTest(WorkersTest):
    """Tables whose rows come and go: whatever is killed, and with any memory limit, a stream ends with the bits of an
    undisturbed run."""

    FILES, ROWS = 14, 300
    BOUNDS = ({"max_rows": 250, "evict_by": "count", "admit_after": 3},
              {"expire_passes": 2, "max_rows": 400},
              {"accessor": "ctr", "embedx_threshold": 2, "max_rows": 250, "evict_by": "show"})

    def setUp(self):
        super().setUp()
        print(f"CISTERN_SEED={SEED}", flush=True)
        self.random = random.Random(SEED)
        self.source = self.folder / "in"
        self.source.mkdir()
        self.counts = collections.Counter()
        for i in range(self.FILES):
            samples = DriftingSamples(self.ROWS, window=i)
            samples.write(self.source / f"{i:03}.norm")
            self.counts.update(key for _, _, slots in samples.rows for slot in slots for key in slot)

    def bound(self, bounds):
        def change(content):
            content["solver"].update(num_epochs=1, batchsize=50, eval_interval=0)
            content["cistern"] = {"embeddings": {"deep": bounds}, "streams": 2}
        self.write_model(change)

    def limit(self):
        """The memory of a server in MiB: any, or so little that most or all rows are in files."""
        return f"--memory_limit_mb={self.random.choice(('0', '0.008', '0.000001'))}"

    def start_run(self, out, servers, *flags):
        return self.start_workers(out, servers, 2, "--stream", self.source, "--once", "--recovery-limit", 60,
                                  "--set", "cistern.stream.samples=150", "--set", "cistern.commit_every=1", *flags)

    def outcome(self, out, servers):
        """Rows and digests; the saved rows, in any order: with a memory limit, servers save them in another one."""
        tables, files = super().outcome(out, servers)
        return tables, {name: sorted(content.splitlines()) for name, content in files.items()}

    def test_kills_of_workers_and_servers_change_no_bit(self):
        for bounds in self.BOUNDS:
            for name in ("whole", "killed", "saved", "state"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            with self.subTest(bounds):
                self.bound(bounds)
                with Servers(1, self.folder) as servers:
                    for worker in self.start_run("whole", servers):
                        self.expect(finish(worker), 0)
                    expected = self.outcome("whole", servers)
                self.expect_bounded(bounds, expected[0]["deep"][0], self.lines("whole"))
                self.assertEqual(self.survive_kills(), expected)

    def expect_bounded(self, bounds, rows, lines):
        """Rows were removed, and those of removed rows and of the rest are all that came."""
        self.assertLess(rows, len(self.counts) / 2)
        passes = [line for line in lines if line["event"] == "pass"]
        self.assertGreater(len(passes), self.FILES)
        removed = {field: sum(line.get(field, 0) for line in passes) for field in ("evicted_rows", "expired_rows")}
        self.assertGreaterEqual(sum(removed.values()) + rows, len(self.counts))
        self.assertGreater(removed["expired_rows" if "expire_passes" in bounds else "evicted_rows"], 100)

    def survive_kills(self):
        """Trains on two servers, kills workers and servers, and returns the outcome."""
        def server(rank, port=0):
            return Server(rank, 2, self.folder, port=port, durability="commit", data_dir=self.folder / "state",
                          flags=[self.limit()])
        (self.folder / "state").mkdir()
        with Servers(0, self.folder) as servers:
            servers.all = [server(0), server(1)]
            workers = self.start_run("killed", servers)
            for kill in range(KILLS):
                self.await_passes("killed", self.passes("killed") + 1, workers)
                time.sleep(self.random.uniform(0, 0.1))
                if all(worker.poll() is not None for worker in workers):
                    break
                if kill % 2 == 0:
                    rank = self.random.randrange(2)
                    old = servers.all[rank]
                    old.kill()
                    old.stop()
                    servers.all[rank] = server(rank, old.port)
                    continue
                self.random.choice(workers).kill()
                for worker in workers:
                    self.end(worker)
                workers = self.start_run("killed", servers, "--resume")
            for worker in workers:
                self.expect(finish(worker), 0)
            return self.outcome("killed", servers)


class TextStreamTest(WorkersTest):
    """Text, by the recipe of the run that the stream continues."""

    def setUp(self):
        super().setUp()
        self.incoming = self.folder / "in"
        self.incoming.mkdir()
        self.day = self.folder / "day.csv"
        self.write(self.day, 3000, items=range(20), seed=1)

    @staticmethod
    def write(path, count, items, seed, rate=lambda item: 0.8 if item % 2 else 0.2):
        draw = random.Random(seed)
        lines = ["click,item,price"]
        for _ in range(count):
            item = draw.choice(items)
            lines.append(f"{int(draw.random() < rate(item))},item{item},{draw.uniform(1, 9):.2f}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def auc(self, path):
        words = ("cistern", "predict", self.folder / "run", "--input", path, "--output", self.folder / "predictions", "--json")
        return self.run_ok(*words).json()["auc"]

    def test_learns_items_that_come_in_the_stream(self):
        self.run_ok("cistern", "train", self.day, "--out", self.folder / "run", "--min-count", 1)
        later = self.folder / "later.csv"
        self.write(later, 2000, items=range(100, 120), seed=2)
        before = self.auc(later)
        for i in range(4):
            self.write(self.incoming / f"{i}.csv", 1500, items=range(100, 120), seed=10 + i)
        self.run_ok("cistern", "train", self.folder / "run", "--stream", self.incoming, "--once")
        passes = [line for line in self.lines("run") if line["event"] == "pass" and "behind_messages" in line]
        self.assertGreater(len(passes), 0)
        for line in passes:  # half of the labels are 1
            self.assertGreater(line["calibration_ratio"], 0.5)
            self.assertLess(line["calibration_ratio"], 2)
        self.assertLess(before, 0.6)
        self.assertGreater(self.auc(later), 0.75)  # the best possible is .80

    def test_files_of_the_models_format_continue_a_run_with_a_recipe(self):
        """What `cistern data convert` makes of a table trains the same model as the table itself."""
        more = self.folder / "more.csv"
        self.write(more, 700, items=range(20), seed=5)
        models = []
        for name, recipe in (("text", ()), ("norm", ("--set", "cistern.stream.recipe=none"))):
            run_folder = self.folder / name
            self.run_ok("cistern", "train", self.day, "--out", run_folder, "--min-count", 1)
            incoming = self.folder / f"in-{name}"
            incoming.mkdir()
            if recipe:
                self.run_ok("cistern", "data", "convert", "--input", more, "--out", self.folder / "converted", "--recipe", run_folder)
                for i, part in enumerate(sorted((self.folder / "converted").rglob("*.norm"))):
                    shutil.copy(part, incoming / f"{i}.norm")
            else:
                shutil.copy(more, incoming)
            summary = self.run_ok("cistern", "train", run_folder, "--stream", incoming, "--once", *recipe, "--json").json()
            self.assertEqual(summary["samples"], 700)
            models.append({str(path.relative_to(run_folder / "model")): path.read_bytes()
                           for path in sorted((run_folder / "model").rglob("part-*")) if path.suffix != ".json"})
        self.assertEqual(*models)

    def test_names_the_row_that_cannot_be_trained(self):
        self.run_ok("cistern", "train", self.day, "--out", self.folder / "run")
        words = ["cistern", "train", self.folder / "run", "--stream", self.incoming, "--once"]
        for row, message in (("2,item1,3.5", "line 3"), ("maybe,item1,3.5", "line 3"), (",item1,3.5", "line 3"),
                             ("1,item1", "line 3")):
            with self.subTest(row):
                (self.incoming / "a.csv").write_text(f"click,item,price\n1,item1,2\n{row}\n", encoding="utf-8")
                self.expect(run(*words), 4, "a.csv", message)
        skipped = self.run_ok(*words, "--set", "cistern.on_bad_data=skip", "--json").json()
        self.assertEqual(skipped["samples"], 1)
        self.assertEqual(sum(skipped["skipped_data"].values()), 1)

    def test_the_run_folder_alternates_between_files_and_the_stream(self):
        """The model file of the run keeps the stream, but neither --once nor other data stay with it."""
        self.run_ok("cistern", "train", self.day, "--out", self.folder / "run")
        stream = ["cistern", "train", self.folder / "run", "--stream", self.incoming, "--json"]
        self.write(self.incoming / "a.csv", 500, items=range(20), seed=10)
        self.assertEqual(self.run_ok(*stream, "--once").json()["samples"], 500)
        late = self.folder / "late.csv"
        self.write(late, 700, items=range(20), seed=11)
        more = self.run_ok("cistern", "train", self.folder / "run", "--resume", "--more", late, "--json").json()
        self.assertNotIn("end of stream", str(more))
        self.write(self.incoming / "b.csv", 300, items=range(20), seed=12)
        self.assertEqual(self.run_ok(*stream, "--once").json()["samples"], 300)
        # Without --once it waits for more.
        process = start(*stream, "--set", "cistern.stream.seconds=0")
        self.addCleanup(self.end, process)
        self.write(self.folder / "c.csv", 200, items=range(20), seed=13)
        passes = self.passes("run")
        (self.folder / "c.csv").rename(self.incoming / "c.csv")
        wait_for(lambda: self.passes("run") > passes, "a pass of the new file")
        process.send_signal(signal.SIGTERM)
        self.expect(finish(process), 130, "interrupted")

    def test_publishes_its_commits(self):
        self.run_ok("cistern", "train", self.day, "--out", self.folder / "run")
        for i in range(3):
            self.write(self.incoming / f"{i}.csv", 500, items=range(20), seed=10 + i)
        serving = self.folder / "serving"
        words = ["cistern", "train", self.folder / "run", "--stream", self.incoming, "--once", "--json", "--publish", serving]
        report = self.run_ok(*words, "--set", "cistern.stream.samples=500").json()
        self.assertGreaterEqual(report["published"]["versions"], 1)
        commits = self.run_ok("cistern", "ckpt", "ls", self.folder / "run" / "state", "--json").json()["commits"]
        self.assertEqual(report["published"]["commit"], commits[-1]["commit"])
        versions = self.run_ok("cistern", "serving", "ls", serving, "--json").json()["versions"]
        self.assertEqual(versions[-1]["commit"], commits[-1]["commit"])
        # A version and the state of the run predict the same bits.
        for place, output in ((self.folder / "run", "a"), (serving, "b")):
            self.run_ok("cistern", "predict", place, "--input", self.day, "--output", self.folder / output)
        self.assertEqual((self.folder / "a").read_bytes(), (self.folder / "b").read_bytes())
        for flags in (("--durability", "none"), ("--no-save-model",)):
            self.expect(run("cistern", "train", self.day, "--out", self.folder / "c", "--publish", serving, *flags), 2,
                        "--publish")

    def test_refuses_what_is_no_stream(self):
        self.run_ok("cistern", "train", self.day, "--out", self.folder / "run")
        for words, message in (
                ((self.folder / "run", "--once"), "--stream"),
                ((self.day, "--out", self.folder / "b", "--stream", self.incoming), "train the table first"),
                ((self.folder / "run", "--stream", self.incoming, "--more", self.day), "exclude each other"),
                ((self.folder / "run", "--stream", self.folder / "nowhere"), "is not a folder"),
                ((self.folder / "run", "--stream", "mqtt://broker/topic"), "mqtt://broker/topic")):
            with self.subTest(words):
                self.expect(run("cistern", "train", *words), 2, message)


if __name__ == "__main__":
    unittest.main()
