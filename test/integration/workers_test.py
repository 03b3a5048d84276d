"""Several workers train one model: what one worker alone would, whatever happens to them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from programs import (BIN, ROOT, ProgramTest, Samples, Server, Servers, finish, run,
                      start, wait_for)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ctr(**more):
    """An embedding whose rows count shows and clicks."""
    return {"accessor": "ctr", "embedx_threshold": 2,
            "optimizer": {"type": "AdaGradShared", "learning_rate": 0.05}, **more}


class WorkersTest(ProgramTest):

    SAMPLES = 1030  # in batches of 100: the last one is another for every worker

    def words(self, name, servers, rank, count, peers, *flags):
        return ["cistern-worker", self.config, "--servers", servers.addresses, "--out",
                self.folder / name, "--rank", rank, "--world-size", count, "--peers", peers,
                "--threads", 1, "--connect-timeout", 1, "--json", *flags]

    def start_workers(self, name, servers, count, *flags):
        self.peers = f"127.0.0.1:{free_port()}"
        workers = [start(*self.words(name, servers, rank, count, self.peers, *flags))
                   for rank in range(count)]
        for worker in workers:
            self.addCleanup(self.end, worker)
        return workers

    def end(self, worker):
        if worker.poll() is None:
            worker.kill()
        worker.communicate()

    def train(self, name, servers, count, *flags):
        """The summary of worker 0."""
        results = [finish(worker) for worker in self.start_workers(name, servers, count, *flags)]
        for result in results:
            self.expect(result, 0)
        return results[0].json()

    def lines(self, name):
        path = self.folder / name / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

    def passes(self, name):
        path = self.folder / name / "metrics.jsonl"
        return path.read_text().count('"event":"pass"') if path.exists() else 0

    def await_passes(self, name, count, workers):
        wait_for(lambda: self.passes(name) >= count or any(w.poll() is not None for w in workers),
                 "passes")

    def outcome(self, name, servers):
        """Rows and digest of each table, and the rows of a saved model, byte for byte."""
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--digest",
                             "--json").json()
        model = self.folder / name / "model"
        files = {str(path.relative_to(model)): path.read_bytes()
                 for path in sorted(model.rglob("part-*"))
                 if path.is_file() and path.suffix != ".json"}
        return {table["name"]: (table["rows"], table["digest"])
                for table in status["tables"]}, files

    @staticmethod
    def rows(files, table):
        """Of a sparse table: the numbers behind each key (docs/formats.md)."""
        return {fields[0]: [float(number) for number in fields[1:]]
                for name, content in files.items() if name.startswith(table + "/")
                for fields in map(str.split, content.decode().splitlines())}

    def expect_close(self, found, expected):
        """The same tables, up to the order in which gradients are added."""
        self.assertEqual(found.keys(), expected.keys())
        for key, numbers in expected.items():
            self.assertEqual(len(found[key]), len(numbers), key)
            for one, other in zip(found[key], numbers):
                self.assertLess(abs(one - other), 2e-4 * (0.01 + abs(other)), key)

    def expect_same_lines(self, found, expected, pass_lines=True):
        facts = ("event", "iter", "samples") + (("rows", "unseen_keys") if pass_lines else ())
        figures = ("loss", "auc", "logloss", "gauc", "average_loss")
        if not pass_lines:
            found, expected = ([line for line in lines if line["event"] in ("train", "eval")]
                               for lines in (found, expected))
        self.assertEqual(len(found), len(expected))
        for line, other in zip(found, expected):
            self.assertEqual([line.get(f) for f in facts], [other.get(f) for f in facts])
            for figure in figures:
                if other.get(figure) is not None:
                    self.assertAlmostEqual(line[figure], other[figure], 5, f"{figure}: {line}")


class Exactness(WorkersTest):
    """1, 2 and 3 workers come to the same model."""

    def compare(self, counts, tables, counted=(), pass_lines=True, servers=2):
        """Trains with each number of workers; counted: tables that count shows and clicks."""
        outcomes = []
        for turn, count in enumerate(counts):
            with self.subTest(workers=count), Servers(servers, self.folder) as fleet:
                name = f"run-{turn}"
                summary = self.train(name, fleet, count)
                tables_found, files = self.outcome(name, fleet)
                outcomes.append((tables_found, files))
                self.assertEqual({n: rows for n, (rows, _) in tables_found.items()},
                                 {n: rows for n, (rows, _) in outcomes[0][0].items()})
                for table in tables:
                    self.expect_close(self.rows(files, table), self.rows(outcomes[0][1], table))
                for table in counted:
                    self.assertEqual(self.counts(files, table), self.counts(outcomes[0][1], table))
                self.expect_same_lines(self.lines(name), self.lines("run-0"), pass_lines)
                if turn > 0 and counts[turn - 1] == count:
                    self.assertEqual(outcomes[turn], outcomes[turn - 1])
        return summary, outcomes

    def counts(self, files, table):
        """Shows and clicks of each row."""
        return {key: numbers[3:5] for key, numbers in self.rows(files, table).items()}

    def two_inputs(self, content):
        layers = content["layers"]
        layers[0]["sparse"] = [{"top": f"data{i}", "type": "DistributedSlot",
                                "max_feature_num_per_sample": 4, "slot_num": 2} for i in (1, 2)]
        shapes = (("deep", 1, 4, 0), ("wide", 1, 1, 0), ("mean", 2, 3, 1))
        embeddings = [{"name": name, "type": "DistributedSlotSparseEmbeddingHash",
                       "bottom": f"data{i}", "top": name,
                       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000,
                                                   "embedding_vec_size": size,
                                                   "combiner": combiner}}
                      for name, i, size, combiner in shapes]
        flat = [{"name": f"flat-{name}", "type": "Reshape", "bottom": name, "top": f"flat-{name}",
                 "leading_dim": 2 * size} for name, _, size, _ in shapes]
        content["layers"] = [layers[0], *embeddings, *flat, *layers[3:]]
        content["layers"][7]["bottom"] = ["flat-deep", "flat-wide", "flat-mean", "dense"]
        content["solver"].update(eval_metrics=["AUC", "GAUC", "AverageLoss"], eval_interval=7,
                                 display=5, snapshot=0)
        content["cistern"] = {"gauc_slot": {"input": "data2", "slot": 1},
                              "embeddings": {"mean": ctr()}}

    def one_key_in_the_last_slot(self):
        for path, count, seed in ((self.train_file, self.SAMPLES, 1), (self.test_file, 257, 2)):
            samples = Samples(count, seed)
            for _, _, keys in samples.rows:
                keys[3] = keys[3][:1]
            samples.write(path)

    def test_of_several_inputs_and_tables_with_counts_and_groups(self):
        self.one_key_in_the_last_slot()
        self.write_model(self.two_inputs)
        summary, outcomes = self.compare((1, 3, 3), ("deep", "wide", "mean"), ("mean",))
        self.assertEqual(summary["samples"], 2 * self.SAMPLES)
        shows = sum(shows for shows, _ in self.counts(outcomes[2][1], "mean").values())
        rows = Samples(self.SAMPLES, 1).rows
        self.assertEqual(shows, 2 * sum(len(keys[2]) + 1 for _, _, keys in rows))

    def test_of_updates_that_make_up_missed_steps_and_an_end_by_iterations(self):
        def change(content):
            content["optimizer"]["update_type"] = "Global"
            content["solver"].update(max_iter=33, num_epochs=0, snapshot=7,
                                     snapshot_prefix=f"{self.folder}/")
            content["cistern"] = {"keep_best": True, "eval_every_epoch": True, "patience": 9}
        self.write_model(change)
        summary, _ = self.compare((1, 2, 3), ("deep",))
        self.assertEqual(summary["iterations"], 33)
        self.assertTrue((self.folder / "run-2" / "snapshot-28").exists())

    def test_of_batches_with_fewer_samples_than_workers(self):
        Samples(31, seed=1).write(self.train_file)
        self.write_model(lambda content: content["solver"].update(batchsize=2, display=1))
        self.compare((1, 3), ("deep",))

    def test_of_passes_that_are_cut_where_memory_ends(self):
        Samples(9010, seed=1).write(self.train_file)

        def change(content):
            content["cistern"] = {"pass_memory_mb": 1, "embeddings": {"deep": ctr()}}
            content["solver"].update(num_epochs=1, eval_interval=50, display=30)
        self.write_model(change)
        self.compare((1, 2), ("deep",), ("deep",), pass_lines=False)
        self.assertGreater(self.passes("run-1"), 1)

    def test_of_several_labels(self):
        self.run_ok("cistern", "data", "generate", "--labels", 2, "--dense", 2, "--slots", 4,
                    "--keys-per-slot", 50, "--key-bits", 32, "--samples", 1030, "--test-samples",
                    257, "--out", self.folder / "generated")

        def change(content):
            data, loss = content["layers"][0], content["layers"][-1]
            data.update(source=str(self.folder / "generated" / "train" / "file_list.txt"),
                        eval_source=str(self.folder / "generated" / "test" / "file_list.txt"))
            data["label"]["label_dim"] = 2
            content["layers"][-2]["fc_param"]["num_output"] = 2
            loss.update(type="MultiCrossEntropyLoss", target_weight=[0.3, 0.7])
        self.write_model(change)
        self.compare((1, 3), ("deep",))

    def test_one_number_of_workers_shuffles_alike(self):
        self.write_model(lambda content: content.update(cistern={"shuffle": True}))
        found = []
        for turn in (1, 2):
            with Servers(2, self.folder) as servers:
                self.train(f"turn-{turn}", servers, 3)
                found.append(self.outcome(f"turn-{turn}", servers))
        self.assertEqual(found[0], found[1])


class Losses(WorkersTest):
    """Workers and servers that end in the middle, or are asked to."""

    EPOCHS = 30

    def setUp(self):
        super().setUp()

        def change(content):
            content["solver"].update(num_epochs=self.EPOCHS, eval_interval=0, display=0)
            content["cistern"] = {"shuffle": False, "embeddings": {"deep": ctr()}}
        self.write_model(change)

    def durable(self):
        return Servers(2, self.folder, durability="commit")

    def expect_every_sample_once(self, files):
        keys = sum(len(slot) for _, _, slots in Samples(self.SAMPLES, 1).rows for slot in slots)
        self.assertEqual(sum(numbers[3] for numbers in self.rows(files, "deep").values()),
                         self.EPOCHS * keys)

    def undisturbed(self):
        with Servers(2, self.folder) as servers:
            self.train("undisturbed", servers, 2)
            outcome = self.outcome("undisturbed", servers)
        self.expect_every_sample_once(outcome[1])
        return outcome

    def test_kills_of_each_worker_and_of_a_server(self):
        expected = self.undisturbed()
        with self.durable() as servers:
            flags = ("--recovery-limit", 60)
            workers = self.start_workers("run", servers, 2, *flags)
            for victim in (1, "server", 0):
                self.await_passes("run", self.passes("run") + 3, workers)
                if victim == "server":
                    old = servers.all[1]
                    old.kill()
                    old.stop()
                    servers.all[1] = Server(1, 2, self.folder, port=old.port, durability="commit")
                    continue
                workers[victim].kill()
                finish(workers[victim])
                workers[victim] = start(*self.words("run", servers, victim, 2, self.peers, *flags,
                                                    "--resume"))
            leader, other = map(finish, workers)
            self.expect(leader, 0)
            self.expect(other, 0, "event=lost", "worker 0 (127.0.0.1)", "event=recover",
                        "waits up to 60 s for the servers and the other workers")
            self.assertEqual(leader.json()["samples"], self.EPOCHS * self.SAMPLES)
            self.assertEqual(self.passes("run"), self.EPOCHS)
            self.assertEqual(self.outcome("run", servers), expected)

    def test_an_interrupt_and_a_resume_with_any_number_of_workers(self):
        expected = self.undisturbed()
        for count in (2, 3):
            with self.subTest(workers=count), self.durable() as servers:
                name = f"run-{count}"
                workers = self.start_workers(name, servers, 2)
                self.await_passes(name, 5, workers)
                workers[1].send_signal(signal.SIGINT)  # one that hears of it tells the others
                for worker in workers:
                    self.expect(finish(worker), 130, "interrupted after iteration", "--resume")
                done = self.lines(name)[-1]["iter"]
                summary = self.train(name, servers, count, "--resume")
                self.assertEqual(summary["resumed_from"], done)
                self.assertEqual(summary["samples"], self.EPOCHS * self.SAMPLES)
                found = self.outcome(name, servers)
                self.expect_every_sample_once(found[1])
                if count == 2:
                    self.assertEqual(found, expected)
                else:
                    self.expect_close(self.rows(found[1], "deep"), self.rows(expected[1], "deep"))
            shutil.rmtree(self.folder / "saved")

    def test_a_loss_ends_the_others_where_nothing_is_kept(self):
        for victim in (0, 1):
            with self.subTest(victim=victim), Servers(1, self.folder) as servers:
                workers = self.start_workers(f"run-{victim}", servers, 3)
                self.await_passes(f"run-{victim}", 3, workers)
                workers[victim].kill()
                for rank, worker in enumerate(workers):
                    result = finish(worker)
                    if rank != victim:
                        self.expect(result, 3, f"worker {victim} (127.0.0.1)", "all workers again")


class Refusals(WorkersTest):
    """Workers that do not go together end, all of them, and say why."""

    def results(self, *workers, limit=30):
        """Of workers given as (rank, of how many, flags...)."""
        peers = f"127.0.0.1:{free_port()}"
        with Servers(1, self.folder) as servers:
            started = [start(*self.words("run", servers, rank, count, peers, "--recovery-limit",
                                         limit, *flags)) for rank, count, *flags in workers]
            for worker in started:
                self.addCleanup(self.end, worker)
            return [finish(worker) for worker in started]

    def test_of_a_bad_record(self):
        content = bytearray(self.train_file.read_bytes())
        content[self.offsets[555] + 6] ^= 0xff
        self.train_file.write_bytes(bytes(content))
        for result in self.results((0, 3), (1, 3), (2, 3)):
            self.expect(result, 4, "train.norm: record 555", "check byte")

    def test_of_another_model(self):
        for result in self.results((0, 3), (1, 3), (2, 3, "--set", "solver.batchsize=50")):
            self.expect(result, 2, "worker 2 was started with another model",
                        "solver.batchsize: 50; worker 0 has 100")

    def test_of_a_worker_of_another_fleet(self):
        (self.folder / "other").mkdir()
        peers = f"127.0.0.1:{free_port()}"
        with Servers(1, self.folder) as own, Servers(1, self.folder / "other") as other:
            started = [start(*self.words("run", servers, rank, 2, peers))
                       for rank, servers in enumerate((own, other))]
            for worker in started:
                self.addCleanup(self.end, worker)
            for worker in started:
                self.expect(finish(worker), 2, f"server {other.addresses} is at epoch 0",
                            "give all workers the same --servers")

    def test_of_a_worker_that_does_not_come(self):
        leader, = self.results((0, 2), limit=1)
        self.expect(leader, 3, "worker 1 did not come")
        other, = self.results((1, 2), limit=1)
        self.expect(other, 3, "worker 0: 127.0.0.1:", "could not be reached")

    def test_of_two_with_one_rank_and_of_other_numbers(self):
        for result in self.results((0, 3), (1, 3), (1, 3)):
            self.expect(result, 2, "two processes say that they are worker 1")
        for result in self.results((0, 3), (1, 2)):
            self.expect(result, 2, "worker 1 says that the group has 2 workers")

    def test_of_a_place_that_cannot_be(self):
        def first(peers, *flags):
            return run("cistern-worker", self.config, "--servers", "127.0.0.1:1", "--out",
                       self.folder / "run", "--rank", 0, "--world-size", 2, "--recovery-limit", 1,
                       *peers, *flags)
        self.expect(first(()), 2, "does not know where worker 0 is", "--peers")
        self.expect(first(("--peers", "nowhere")), 2, "'nowhere' is no address")
        self.expect(first(("--peers", "10.1.2.3:7790")), 2, "--insecure-remote")
        with Servers(1, self.folder) as servers:  # which listens there
            self.expect(run(*self.words("run", servers, 0, 2, servers.addresses)), 3,
                        "Address already in use", "choose another port")

    def test_of_an_interrupt_before_all_are_there(self):
        with Servers(1, self.folder) as servers:
            worker = start(*self.words("run", servers, 1, 2, f"127.0.0.1:{free_port()}"))
            self.addCleanup(self.end, worker)
            time.sleep(1)
            worker.send_signal(signal.SIGINT)
            self.expect(finish(worker), 130, "interrupted")


class Script(WorkersTest):
    """scripts/run_workers.sh with real workers."""

    def start_script(self, servers, *words):
        return subprocess.Popen(
            [str(ROOT / "scripts" / "run_workers.sh"), str(self.config), "--out",
             str(self.folder / "run"), "--workers", "2", "--dir", str(self.folder / "fleet"),
             "--servers", servers.addresses, "--bin", str(BIN), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)

    def test_two_workers(self):
        with Servers(1, self.folder) as servers:
            result = self.expect(finish(self.start_script(servers)), 0)
            self.assertIn("trained 2060 samples", result.out)

    def test_an_interrupt(self):
        self.write_model(lambda content: content["solver"].update(num_epochs=10000, display=0,
                                                                  eval_interval=0))
        with Servers(1, self.folder) as servers:
            script = self.start_script(servers)
            wait_for(lambda: self.passes("run") > 2 or script.poll() is not None, "passes")
            os.killpg(script.pid, signal.SIGINT)
            self.expect(finish(script), 130, "stopping the workers")
        for rank in (0, 1):
            self.assertIn("interrupted after", (self.folder / "fleet" / f"worker-{rank}.log")
                          .read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
