"""Whole training runs on a GPU: rows, losses and predictions equal those of the CPU, within rounding.

The tests run cistern-emulated, which emulates a GPU on the CPU (test/cuda/emulator). On a machine with
a GPU, scripts/gpu_check.sh runs some of them with the program named by CISTERN_DEVICE_PROGRAM: cistern.
"""

import json
import os
import random
import socket
import unittest

from programs import BIN, ProgramTest, Samples, Servers, finish, run, start

PROGRAM = os.environ.get("CISTERN_DEVICE_PROGRAM", "cistern-emulated")
WORKER = "cistern-worker-emulated"
SMALL_PASSES = ("--set", "cistern.pass_memory_mb=1", "--set", "cistern.device_memory_mb=1",
                "--set", "solver.batchsize=50", "--set", "solver.batchsize_eval=60")


@unittest.skipUnless((BIN / PROGRAM).exists(), "this build has no emulated GPU")
class Device(ProgramTest):
    SAMPLES = 800
    runs = 0

    def train(self, device, *flags):
        self.runs += 1
        out = self.folder / f"run-{self.runs}"
        self.run_ok(PROGRAM, "train", self.config, "--out", out, "--device", device, *flags)
        return out

    def predict(self, run, device, *flags):
        output = self.folder / "predictions.tsv"
        self.run_ok(PROGRAM, "predict", self.config, "--model", run, "--data", self.test_file,
                    "--output", output, "--device", device, *flags)
        return [[float(word) for word in line.split()] for line in output.read_text().splitlines()]

    def lines(self, run):
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    def expect_close(self, one, other, tolerance):
        self.assertEqual(len(one), len(other))
        for mine, theirs in zip(one, other):
            for a, b in zip(mine, theirs):
                self.assertAlmostEqual(a, b, delta=tolerance)

    def expect_same_training(self, *flags):
        cpu, cuda = self.train("cpu", *flags), self.train("cuda", *flags)
        ours, theirs = self.lines(cuda), self.lines(cpu)
        self.assertEqual([line["event"] for line in ours], [line["event"] for line in theirs])
        for mine, other in zip(ours, theirs):
            for name in ("loss", "auc", "logloss"):
                if other.get(name) is not None:
                    self.assertAlmostEqual(mine[name], other[name], delta=2e-4, msg=str(mine))
        if PROGRAM == "cistern-emulated":  # by its clock, two events are 1 ms apart
            self.assertAlmostEqual(ours[-1]["busy"]["seconds"], 1e-3 * ours[-1]["iter"], delta=1e-9)
        expected = self.predict(cpu, "cpu", *flags)
        self.expect_close(self.predict(cuda, "cpu", *flags), expected, 2e-4)
        # Both devices read the same rows.
        self.expect_close(self.predict(cpu, "cuda", *flags), expected, 1e-6)

    def test_a_dnn(self):
        self.expect_same_training()

    def test_rows_are_carried_from_pass_to_pass(self):
        def change(content):
            content["cistern"] = {"shuffle": True}
            content["solver"]["snapshot"] = 3  # a snapshot also ends a pass
        self.write_model(change)
        self.expect_same_training(*SMALL_PASSES)

    def test_ctr_rows_and_deferred_updates(self):
        def change(content):
            content["cistern"] = {"embeddings": {"deep": {
                "accessor": "ctr", "embedx_threshold": 2, "optimizer": {"type": "AdaGradShared"}}}}
        self.write_model(change)
        self.expect_same_training(*SMALL_PASSES)

        def make_up(content):
            content["optimizer"]["update_type"] = "Global"
        self.write_model(make_up)
        self.expect_same_training(*SMALL_PASSES, "--set", "solver.seed=3")

    def test_a_step_that_is_not_finite_ends_the_run_or_is_skipped(self):
        samples = Samples(self.SAMPLES, seed=1)
        samples.rows[350][1][0] = 3e38  # finite, but its products overflow
        samples.write(self.train_file)
        skipped = set()
        for device in ("cpu", "cuda"):
            with self.subTest(device=device):
                out = self.folder / f"overflow-{device}"
                stopped = run(PROGRAM, "train", self.config, "--out", out, "--device", device)
                self.expect(stopped, 4, "iteration ", "too large to be squared")
                result = self.run_ok(PROGRAM, "train", self.config, "--out", out, "--overwrite",
                                     "--device", device, "--json", "--set",
                                     'cistern.not_finite="skip"')
                skipped.add(result.json()["skipped_steps"])
                self.assertEqual(self.lines(out)[-1]["skipped_steps"],
                                 result.json()["skipped_steps"])
        self.assertEqual(len(skipped), 1)
        self.assertIn(skipped.pop(), (1, 2))  # two epochs read the sample; a dead ReLU may hide it

    def test_illegal_address_ends_the_run_and_keeps_the_last_commit(self):
        # A pass is committed while the next one trains: in the third or fourth, one is committed for certain.
        flags = (*SMALL_PASSES, "--set", "solver.num_epochs=4")
        whole = self.train("cuda", *flags)
        broken = self.folder / "broken"
        words = ("train", self.config, "--out", broken, "--device", "cuda", *flags)
        fault = {**os.environ, "CISTERN_EMULATED_FAULT": "2300"}
        stopped = run(PROGRAM, *words, env=fault)
        self.expect(stopped, 1, "illegal memory access", "--check-ops")
        self.assertGreater(sum(line["event"] == "pass" for line in self.lines(broken)), 0)
        other = {**os.environ, "CISTERN_EMULATED_PRODUCTS": "other"}
        self.expect(run(PROGRAM, *words, "--resume", env=other), 0,
                    "with other kernels than before this run was resumed")
        self.assertEqual(self.predict(broken, "cuda"), self.predict(whole, "cuda"))

        checked = run(PROGRAM, "train", self.config, "--out", self.folder / "checked", "--device",
                      "cuda", "--check-ops", *flags, env=fault)
        self.expect(checked, 1, "illegal memory access")
        self.assertRegex(checked.err, r"[A-Z]\w+: an illegal memory access")  # the op's name

    def test_unusable_gpu_is_reported(self):
        for what, words in (
                ("DRIVER=11080", ("no GPU: the driver supports CUDA 11.8", "this build needs 12.0",
                                  "update the driver", "--device=cpu")),
                ("DRIVER=0", ("no GPU: this machine has no CUDA driver", "--device=cpu")),
                ("CAPABILITY=7", ("GPU 0 (emulated GPU) has compute capability 7.0",
                                  "the minimum is 8.0")),
                ("MEMORY_MB=1", ("a step of 1000000 samples needs", "this GPU has 1.0 MiB",
                                 "solver.batchsize"))):
            name, value = what.split("=")
            large = ("--set", "solver.batchsize=1000000") if name == "MEMORY_MB" else ()
            result = run(PROGRAM, "train", self.config, "--out", self.folder / name, "--device",
                         "cuda", *large, env={**os.environ, f"CISTERN_EMULATED_{name}": value})
            self.expect(result, 1, *words)

    def start_together(self, servers, out, workers, device, *flags, faults=None):
        """Starts several workers of one run, which exchange through the host, as GPUs without NCCL do.
        faults: {rank: number of calls after which its GPU fails}."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            peers = f"127.0.0.1:{free.getsockname()[1]}"
        environments = [dict(os.environ) for _ in range(workers)]
        for rank, calls in (faults or {}).items():
            environments[rank]["CISTERN_EMULATED_FAULT"] = str(calls)
        return [start(WORKER, self.config, "--servers", servers.addresses, "--out", out, "--device",
                      device, "--threads", "1", "--rank", str(rank), "--world-size", str(workers),
                      "--peers", peers, *SMALL_PASSES, *flags, env=environments[rank])
                for rank in range(workers)]

    def test_passes_fit_the_free_gpu_memory(self):
        samples = Samples(6000, seed=1)
        draw = random.Random(3)
        for _, _, slots in samples.rows:
            slots[:] = [[draw.randrange(1, 1 << 30) for _ in range(3)] for _ in slots]
        samples.write(self.train_file)

        def change(content):
            content["solver"].update(num_epochs=1, eval_interval=0)
            content["layers"][0]["sparse"][0]["max_feature_num_per_sample"] = 12
            content["layers"][1]["sparse_embedding_hparam"]["embedding_vec_size"] = 64
            content["layers"][2]["leading_dim"] = 256
        self.write_model(change)
        for has in ("MEMORY_MB", "FREE_MB"):
            for mib, passes in ((1000, 1), (200, 2), (64, 8)):
                with self.subTest(has=has, mib=mib):
                    result = run(
                        PROGRAM, "train", self.config, "--out", self.folder / f"{has}-{mib}",
                        "--device", "cuda", "--no-save-model", "--json",
                        env={**os.environ, f"CISTERN_EMULATED_{has}": str(mib)})
                    self.assertGreaterEqual(self.expect(result, 0).json()["passes"], passes)
        refused = run(PROGRAM, "train", self.config, "--out", self.folder / "small", "--device",
                      "cuda", env={**os.environ, "CISTERN_EMULATED_MEMORY_MB": "8"})
        self.expect(refused, 1, "one batch of 100 samples takes", "the GPU memory left by the model",
                    "lower solver.batchsize")

    def train_together(self, workers, device, *flags):
        self.runs += 1
        out = self.folder / f"run-{self.runs}"
        with Servers(2, self.folder) as servers:
            for process in self.start_together(servers, out, workers, device, *flags):
                self.expect(finish(process), 0)
        return out

    def groups(self, content):
        """Changes the evaluation to group samples by the key of the last slot, of which each has one."""
        for path, count, seed in ((self.train_file, self.SAMPLES, 1), (self.test_file, 200, 2)):
            samples = Samples(count, seed)
            for _, _, keys in samples.rows:
                keys[3] = keys[3][:1]
            samples.write(path)
        content["solver"]["eval_metrics"] = ["AUC", "GAUC"]
        content["cistern"] = {"gauc_slot": {"input": "data1", "slot": 3}}

    def test_several_workers_train_the_same_model_as_one(self):
        def change(content):  # includes ctr rows, whose shows and clicks come from the batches
            content["cistern"] = {"embeddings": {"deep": {
                "accessor": "ctr", "embedx_threshold": 2, "optimizer": {"type": "AdaGradShared"}}}}
        for model, workers in ((self.groups, 3), (change, 2)):
            self.write_model(model)
            alone, together = (self.train_together(1, "cpu"), self.train_together(workers, "cuda"))
            theirs, ours = self.lines(alone)[-1], self.lines(together)[-1]
            self.assertEqual(ours["iter"], theirs["iter"])
            self.assertEqual(ours["samples"], theirs["samples"])
            self.assertEqual("gauc" in theirs, model == self.groups)
            for name in ("loss", "auc", "logloss", "gauc"):
                if theirs.get(name) is not None:
                    self.assertAlmostEqual(ours[name], theirs[name], delta=2e-4)
            self.expect_close(self.predict(together, "cpu"), self.predict(alone, "cpu"), 2e-4)

    def test_several_workers_continue_after_one_gpu_fails(self):
        def change(content):
            self.groups(content)
            content["cistern"]["shuffle"] = True
        self.write_model(change)
        whole, broken = self.train_together(2, "cuda"), self.folder / "broken"
        with Servers(2, self.folder, durability="commit") as servers:
            words = (servers, broken, 2, "cuda")
            ends = [finish(process) for process in
                    self.start_together(*words, "--recovery-limit", "5", faults={1: 1500})]
            self.expect(ends[1], 1, "illegal memory access")
            self.assertNotEqual(ends[0].code, 0)
            commits = sum(line["event"] == "pass" for line in self.lines(broken))
            self.assertGreater(commits, 0)
            for process in self.start_together(*words, "--resume"):
                self.expect(finish(process), 0)
        self.assertEqual(self.predict(broken, "cpu"), self.predict(whole, "cpu"))

    def test_graphs_do_not_change_the_bits_of_several_workers(self):
        captured, one_by_one = (self.train_together(2, "cuda", "--set", f"solver.cuda_graph={word}")
                                for word in ("true", "false"))
        self.assertEqual(self.predict(captured, "cpu"), self.predict(one_by_one, "cpu"))
        losses = [[line.get("loss") for line in self.lines(run)] for run in (captured, one_by_one)]
        self.assertEqual(*losses)

    def test_repeated_runs_and_fleets_give_the_same_bits(self):
        expected = self.predict(self.train("cuda"), "cuda")
        with Servers(2, self.folder) as servers:
            run = self.train("cuda", "--servers", servers.addresses)
            self.assertEqual(self.predict(run, "cuda"), expected)


class NoDevice(ProgramTest):

    def test_missing_gpu_is_reported(self):
        if "no GPU" not in run("cistern", "version").out:
            self.skipTest("this machine has a GPU")
        result = run("cistern", "train", self.config, "--device", "cuda", "--out",
                     self.folder / "run")
        self.expect(result, 1, "no GPU", "--device=cpu")
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
