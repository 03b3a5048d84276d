"""Several workers train the same model as one worker, also when workers or servers fail."""

import os
import shutil
import signal
import subprocess
import unittest

from programs import BIN, ROOT, Samples, Server, Servers, finish, start, wait_for
from workers import WorkersTest


def ctr(**more):
    """Settings of an embedding whose rows count shows and clicks."""
    return {"accessor": "ctr", "embedx_threshold": 2,
            "optimizer": {"type": "AdaGradShared", "learning_rate": 0.05}, **more}


class Exactness(WorkersTest):
    """1, 2 and 3 workers train the same model."""

    def compare(self, counts, tables, counted=(), pass_lines=True, servers=2):
        """Trains with each number of workers and compares. counted: tables that count shows and clicks."""
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

    def test_several_inputs_tables_with_counts_and_groups(self):
        self.one_key_in_the_last_slot()
        self.write_model(self.two_inputs)
        summary, outcomes = self.compare((1, 3, 3), ("deep", "wide", "mean"), ("mean",))
        self.assertEqual(summary["samples"], 2 * self.SAMPLES)
        shows = sum(shows for shows, _ in self.counts(outcomes[2][1], "mean").values())
        rows = Samples(self.SAMPLES, 1).rows
        self.assertEqual(shows, 2 * sum(len(keys[2]) + 1 for _, _, keys in rows))

    def test_deferred_updates_and_an_end_by_iterations(self):
        def change(content):
            content["optimizer"]["update_type"] = "Global"
            content["solver"].update(max_iter=33, num_epochs=0, snapshot=7,
                                     snapshot_prefix=f"{self.folder}/")
            content["cistern"] = {"keep_best": True, "eval_every_epoch": True, "patience": 9}
        self.write_model(change)
        summary, _ = self.compare((1, 2, 3), ("deep",))
        self.assertEqual(summary["iterations"], 33)
        self.assertTrue((self.folder / "run-2" / "snapshot-28").exists())

    def test_batches_with_fewer_samples_than_workers(self):
        Samples(31, seed=1).write(self.train_file)
        self.write_model(lambda content: content["solver"].update(batchsize=2, display=1))
        self.compare((1, 3), ("deep",))

    def test_passes_limited_by_memory(self):
        Samples(9010, seed=1).write(self.train_file)

        def change(content):
            content["cistern"] = {"pass_memory_mb": 1, "embeddings": {"deep": ctr()}}
            content["solver"].update(num_epochs=1, eval_interval=50, display=30)
        self.write_model(change)
        self.compare((1, 2), ("deep",), ("deep",), pass_lines=False)
        self.assertGreater(self.passes("run-1"), 1)

    def test_several_labels(self):
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

    def test_shuffling_is_repeatable(self):
        self.write_model(lambda content: content.update(cistern={"shuffle": True}))
        found = []
        for turn in (1, 2):
            with Servers(2, self.folder) as servers:
                self.train(f"turn-{turn}", servers, 3)
                found.append(self.outcome(f"turn-{turn}", servers))
        self.assertEqual(found[0], found[1])


class Losses(WorkersTest):
    """Workers and servers that are killed or interrupted during training."""

    EPOCHS = 30

    def setUp(self):
        super().setUp()

        def change(content):
            content["solver"].update(num_epochs=self.EPOCHS, eval_interval=0, display=0)
            content["cistern"] = {"shuffle": False, "commit_every": 2, "embeddings": {"deep": ctr()}}
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
                        "waiting up to 60 s for the servers and the other workers")
            self.assertEqual(leader.json()["samples"], self.EPOCHS * self.SAMPLES)
            self.assertEqual(self.passes("run"), self.EPOCHS)
            self.assertEqual(self.outcome("run", servers), expected)

    def test_interrupt_and_resume_with_any_number_of_workers(self):
        expected = self.undisturbed()
        for count in (2, 3):
            with self.subTest(workers=count), self.durable() as servers:
                name = f"run-{count}"
                workers = self.start_workers(name, servers, 2)
                self.await_passes(name, 5, workers)
                workers[1].send_signal(signal.SIGINT)  # it forwards the interrupt to the others
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

    def test_lost_worker_ends_the_run_without_durability(self):
        for victim in (0, 1):
            with self.subTest(victim=victim), Servers(1, self.folder) as servers:
                workers = self.start_workers(f"run-{victim}", servers, 3)
                self.await_passes(f"run-{victim}", 3, workers)
                workers[victim].kill()
                for rank, worker in enumerate(workers):
                    result = finish(worker)
                    if rank != victim:
                        self.expect(result, 3, f"worker {victim} (127.0.0.1)", "restart all workers")


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
