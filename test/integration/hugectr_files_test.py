"""HugeCTR's model files: another program reads the files of training and of `cistern export hugectr`,
and training starts from files of another program."""

import json
import math
import pathlib
import struct
import unittest

import hugectr_files
from hugectr_models import DIM, WIDTH, two_embeddings
from programs import ProgramTest, Samples, run


class HugeCtrFiles(ProgramTest):
    """A model of two embeddings, one of each kind, with every layer that has weights."""

    SAMPLES = 600

    def setUp(self):
        super().setUp()
        self.slots = {}  # key -> lowest slot in which it occurs
        for _, _, keys in Samples(self.SAMPLES, seed=1).rows:
            for slot, held in enumerate(keys):
                for key in held:
                    self.slots[key] = min(slot, self.slots.get(key, slot))
        self.write_model(two_embeddings)
        self.prefix = self.folder / "files" / "a"

    def train(self, name, *flags, code=0, messages=()):
        return self.expect(run("cistern", "train", self.config, "--out", self.folder / name,
                               "--threads", 1, "--json", *flags,
                               "--set", f"solver.snapshot_prefix={self.prefix}"), code, *messages)

    def start_from(self, *sets):
        """Flags of a run that starts from files and changes no weight, so its model equals the files."""
        rates = ("optimizer.adam_hparam.learning_rate=0", "solver.max_iter=1", "solver.snapshot=0")
        return [word for one in (*sets, *rates) for word in ("--set", one)]

    def predictions(self, model):
        output = self.folder / "predictions.tsv"
        self.run_ok("cistern", "predict", self.config, "--model", model, "--data", self.test_file,
                    "--output", output, "--threads", 1)
        return output.read_text(encoding="utf-8")

    def names(self, iteration=12):
        return (f"{self.prefix}_dense_{iteration}.model",
                [f"{self.prefix}{e}_sparse_{iteration}.model" for e in (0, 1)])

    def test_another_program_reads_the_files_of_training(self):
        self.train("run")
        names = sorted(path.name for path in self.prefix.parent.iterdir())
        self.assertEqual(names, sorted(
            f"a{name}_{at}.model{end}" for at in (6, 12)
            for name, end in (("_dense", ""), ("_dense", ".ntp.json"), ("0_sparse", ""),
                              ("1_sparse", ""))))
        dense, sparse = self.names()
        columns = 2 * DIM * Samples.SLOTS + 2 * Samples.DENSE
        self.assertEqual(len(hugectr_files.floats(dense)),
                         2 * Samples.DENSE + 2 * 2 * columns + (columns + 1) * WIDTH + 2 * WIDTH +
                         WIDTH + 1)
        first = hugectr_files.rows_of_file(sparse[0], DIM)
        second = hugectr_files.rows_of_file(sparse[1], DIM, slots=True)
        self.assertEqual(set(first), set(self.slots))
        self.assertEqual({key: row[0] for key, row in second.items()}, self.slots)
        self.check_rows_are_those_of_the_model("first", first)
        self.check_predictions(dense, first, second)

    def check_rows_are_those_of_the_model(self, table, rows):
        """Compares `rows` with the text of the model folder: key w.. state.. (docs/formats.md)."""
        for path in (self.folder / "run" / "model" / table).iterdir():
            for line in path.read_text(encoding="utf-8").splitlines():
                numbers = line.split()
                weights = [struct.unpack("<f", struct.pack("<f", float(x)))[0]
                           for x in numbers[1:1 + DIM]]
                self.assertEqual(rows[int(numbers[0])][1], weights)

    def check_predictions(self, dense, first, second):
        """Computes the predictions from the files alone, layer by layer, and compares them."""
        cells = iter(hugectr_files.floats(dense))
        take = lambda count: [next(cells) for _ in range(count)]
        columns = 2 * DIM * Samples.SLOTS + 2 * Samples.DENSE
        multiply = take(2 * Samples.DENSE)
        crosses = [(take(columns), take(columns)) for _ in range(2)]
        weight1, bias1 = take(columns * WIDTH), take(WIDTH)
        gamma, beta = take(WIDTH), take(WIDTH)
        weight2, bias2 = take(WIDTH), take(1)
        ((mean, variance),) = hugectr_files.statistics(dense)
        lines = self.predictions(self.folder / "run").splitlines()
        samples = Samples(self.SAMPLES // 4, seed=2).rows
        self.assertEqual(len(lines), len(samples))
        compared = 0
        for line, (_, values, keys) in zip(lines, samples):
            x = []
            for rows in (first, second):
                if not all(key in rows for slot in keys for key in slot):
                    break  # the files have no row for a key that did not occur in training
                x += [sum(rows[key][1][i] for key in slot) for slot in keys for i in range(DIM)]
            if len(x) < 2 * DIM * Samples.SLOTS:
                continue
            x += [values[i] * multiply[2 * i + j] for i in range(Samples.DENSE) for j in range(2)]
            x0 = x
            for weight, bias in crosses:
                dot = sum(a * w for a, w in zip(x, weight))
                x = [a * dot + b + c for a, b, c in zip(x0, x, bias)]
            x = [sum(a * weight1[i * WIDTH + j] for i, a in enumerate(x)) + bias1[j]
                 for j in range(WIDTH)]
            x = [gamma[j] * (a - mean[j]) / math.sqrt(variance[j] + 0.001) + beta[j]
                 for j, a in enumerate(x)]
            logit = sum(a * w for a, w in zip(x, weight2)) + bias2[0]
            self.assertAlmostEqual(float(line.split("\t")[1]), 1 / (1 + math.exp(-logit)), places=4)
            compared += 1
        self.assertGreater(compared, len(lines) // 2)

    def test_run_started_from_the_files_matches_the_run_that_wrote_them(self):
        self.train("run")
        before = self.predictions(self.folder / "run")
        dense, sparse = self.names()
        for form in ("v2", "v3"):
            with self.subTest(form):
                prefix = self.folder / "exported" / form
                shown = self.run_ok("cistern", "export", "hugectr", self.config, "--model",
                                    self.folder / "run", "--out", prefix, "--form", form,
                                    "--iteration", 12, "--embedded-servers", 2, "--json").json()
                self.assertEqual(shown["rows"], 2 * len(self.slots))
                # Rows are in the order of the servers' shards, so the bytes are equal, too.
                if form == "v2":
                    for path in (dense, f"{dense}.ntp.json"):
                        exported = path.replace(str(self.prefix), str(prefix))
                        with open(path, "rb") as one, open(exported, "rb") as other:
                            self.assertEqual(one.read(), other.read())
                    self.assertEqual(
                        hugectr_files.rows_of_file(sparse[1], DIM, slots=True),
                        hugectr_files.rows_of_file(f"{prefix}1_sparse_12.model", DIM, slots=True))
                self.check_start(prefix, form, before)

    def check_start(self, prefix, form, before):
        # BatchNorm's statistics change even at a learning rate of zero, so a new export differs in them.
        files = self.start_from(f"solver.dense_model_file={prefix}_dense_12.model",
                                f'solver.sparse_model_file=["{prefix}0_sparse_12.model",'
                                f'"{prefix}1_sparse_12.model"]', "layers.bn.bn_param.factor=0")
        self.train(f"again.{form}", *files)
        self.assertEqual(self.predictions(self.folder / f"again.{form}"), before)

    def test_v3_folder_contains_the_optimizer_state(self):
        self.train("run", "--set", "cistern.snapshot_form=v3")
        dense, sparse = self.names()
        rows = hugectr_files.rows_of_folder(sparse[1], DIM, slots=True, states=("Adam.m", "Adam.v"))
        self.assertEqual({key: row[0] for key, row in rows.items()}, self.slots)
        lines = {}
        for path in (self.folder / "run" / "model" / "second").iterdir():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, *numbers = line.split()
                lines[int(key)] = [struct.unpack("<f", struct.pack("<f", float(x)))[0]
                                   for x in numbers]
        self.assertEqual({key: row[1] + row[2]["Adam.m"] + row[2]["Adam.v"]
                          for key, row in rows.items()}, lines)
        weights = hugectr_files.floats(dense)
        states = hugectr_files.floats(f"{self.prefix}_opt_dense_12.model")
        text = (self.folder / "run" / "model" / "dense" / "part-000").read_text(encoding="utf-8")
        table = [[struct.unpack("<f", struct.pack("<f", float(x)))[0] for x in line.split()]
                 for line in text.splitlines()]
        self.assertEqual(weights, [row[0] for row in table])
        self.assertEqual(states, [row[1] for row in table] + [row[2] for row in table])
        # A run that starts from them without another step has that state.
        prefix = self.folder / "back"
        self.train("again", *self.start_from(
            f"solver.dense_model_file={dense}",
            f"solver.dense_opt_states_file={self.prefix}_opt_dense_12.model",
            f'solver.sparse_model_file={json.dumps(sparse)}', "optimizer.adam_hparam.beta1=0.5"),
            "--durability", "none")
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", self.folder / "again",
                    "--set", "optimizer.adam_hparam.beta1=0.5", "--out", prefix, "--form", "v3")
        again = hugectr_files.rows_of_folder(f"{prefix}0_sparse_0.model", DIM,
                                             states=("Adam.m", "Adam.v"))
        first = hugectr_files.rows_of_folder(sparse[0], DIM, states=("Adam.m", "Adam.v"))
        self.assertEqual(set(again), set(first))
        for key, (_, row, state) in first.items():
            self.assertEqual(again[key][1], row)
            # After one more step, v = beta2 v + (1 - beta2) g^2 is at least beta2 v.
            for old, new in zip(state["Adam.v"], again[key][2]["Adam.v"]):
                self.assertGreaterEqual(new, 0.99 * old)

    def test_training_starts_from_files_of_another_program(self):
        columns = 2 * DIM * Samples.SLOTS + 2 * Samples.DENSE
        count = (2 * Samples.DENSE + 4 * columns + (columns + 1) * WIDTH + 2 * WIDTH + WIDTH + 1)
        dense = self.folder / "made.model"
        hugectr_files.write_floats(dense, [(i % 7 - 3) / 64 for i in range(count)])
        (self.folder / "made.model.ntp.json").write_text(
            json.dumps({"layers": [{"type": "BatchNorm", "mean": [0.5, -0.25, 0.125],
                                    "var": [1.5, 2, 0.0625]}]}), encoding="utf-8")
        rows = {key: (slot, [key / 1024 + i / 8 for i in range(DIM)])
                for key, slot in self.slots.items()}
        hugectr_files.write_rows_to_file(self.folder / "made0", rows, DIM)
        hugectr_files.write_rows_to_folder(self.folder / "made1", rows, DIM, slots=True)
        self.train("run", *self.start_from(
            f"solver.dense_model_file={dense}",
            f'solver.sparse_model_file=["{self.folder}/made0","{self.folder}/made1"]',
            "layers.bn.bn_param.factor=0"))
        first = {key: (None, row[1]) for key, row in rows.items()}
        self.check_predictions(str(dense), first, rows)

    def test_fewer_files_than_embeddings(self):
        self.train("run")
        _, sparse = self.names()
        flags = self.start_from(f"solver.sparse_model_file={sparse[0]}")
        self.train("again", *flags)
        prefix = self.folder / "back"
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", self.folder / "again",
                    "--out", prefix)
        self.assertEqual(hugectr_files.rows_of_file(f"{prefix}0_sparse_0.model", DIM),
                         hugectr_files.rows_of_file(sparse[0], DIM))
        self.assertNotEqual(
            hugectr_files.rows_of_file(f"{prefix}1_sparse_0.model", DIM, slots=True),
            hugectr_files.rows_of_file(sparse[1], DIM, slots=True))

    def test_resumed_run_does_not_read_the_files_again(self):
        self.train("run")
        dense, sparse = self.names()
        flags = ["--set", f"solver.dense_model_file={dense}", "--set",
                 f"solver.sparse_model_file={json.dumps(sparse)}", "--set", "solver.snapshot=0"]
        self.train("whole", *flags)
        self.train("parts", *flags, "--set", "solver.max_iter=6")
        for path in (dense, *sparse):
            with open(path, "wb"):
                pass  # empty files, which would be refused
        self.train("parts", *flags, "--resume", messages=("apply to a fresh start",))
        self.assertEqual(self.predictions(self.folder / "parts"),
                         self.predictions(self.folder / "whole"))

    def test_slots_follow_from_slot_sizes(self):
        def sizes(content):
            two_embeddings(content)
            hparam = content["layers"][2]["sparse_embedding_hparam"]
            # Keys of Samples start at 1, so slot 0 has one key more.
            hparam["slot_size_array"] = [51, 50, 50, 50]
        self.write_model(sizes)
        self.train("run")
        self.train_file.rename(self.folder / "gone")
        prefix = self.folder / "exported"
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", self.folder / "run",
                    "--out", prefix)
        second = hugectr_files.rows_of_file(f"{prefix}1_sparse_0.model", DIM, slots=True)
        self.assertEqual({key: row[0] for key, row in second.items()}, self.slots)

    def test_initial_weights_depend_on_slot_sizes(self):
        def sizes(content):
            two_embeddings(content)
            content["layers"][2]["sparse_embedding_hparam"]["slot_size_array"] = [51, 50, 25, 75]
        self.write_model(sizes)
        self.train("run", *self.start_from("solver.batchsize=600"))
        prefix = self.folder / "first"
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", self.folder / "run",
                    "--out", prefix)
        widest = [0] * 4
        for slot, row in hugectr_files.rows_of_file(f"{prefix}1_sparse_0.model", DIM,
                                                    slots=True).values():
            widest[slot] = max(widest[slot], *map(abs, row))
        for width, size in zip(widest, (51, 50, 25, 75)):
            self.assertLessEqual(width, (1 + 1e-6) * size ** -0.5)
            self.assertGreater(width, 0.9 * size ** -0.5)
        plain = hugectr_files.rows_of_file(f"{prefix}0_sparse_0.model", DIM)
        self.assertLessEqual(max(abs(x) for _, row in plain.values() for x in row), 0.05)

    def test_wide_keys(self):
        self.train("run")
        prefix = self.folder / "exported"
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", self.folder / "run",
                    "--set", "solver.input_key_type=I64", "--set", "layers.data.source=none",
                    "--set", "layers.second.type=DistributedSlotSparseEmbeddingHash",
                    "--out", prefix)
        _, sparse = self.names()
        self.assertEqual(hugectr_files.rows_of_file(f"{prefix}0_sparse_0.model", DIM, key="Q"),
                         hugectr_files.rows_of_file(sparse[0], DIM))

    def test_files_that_do_not_fit_are_refused_before_training(self):
        self.train("run")
        dense, sparse = self.names()
        bad = self.folder / "bad"
        nan = struct.pack("<f", math.nan)

        def refused(setting, content, code, *messages):
            bad.write_bytes(content)
            self.train("refused", "--set", f"{setting}={bad}", "--durability", "none", "--overwrite",
                       code=code, messages=(str(bad), *messages))
            # A dry run does not check the contents of rows in sparse files.
            seen = "record" not in messages[0] and "twice" not in messages[0]
            self.expect(run("cistern", "train", self.config, "--dry-run", "--set",
                            f"{setting}={bad}"), code if seen else 0, *(messages if seen else ()))

        with open(dense, "rb") as file:
            weights = file.read()
        refused("solver.dense_model_file", weights[:-8], 2,
                f"{len(weights) - 8} bytes; the model's layers need {len(weights)}",
                "within layer 'fc2'", "weights")
        refused("solver.dense_model_file", weights + b"....", 2, "after the last layer for 4 bytes")
        refused("solver.dense_model_file", nan + weights[4:], 4, "number 0 is not finite",
                "layer 'multiply'")
        with open(sparse[0], "rb") as file:
            rows = file.read()
        refused("solver.sparse_model_file", rows[:-1], 2, "not a multiple of the row size, 20 bytes",
                "embedding 'first'")
        refused("solver.sparse_model_file", rows[:4] + nan + rows[8:], 4, "record 0", "not finite")
        refused("solver.sparse_model_file", rows[:20] + rows, 4, ": record 1 (key ",
                    "record 0 already has this key")
        self.train("refused", "--overwrite", "--set", "solver.dense_model_file=nowhere",
                   code=2, messages=("nowhere: no such file", "current folder"))
        self.train("refused", "--overwrite", "--set", 'solver.sparse_model_file=["a","b","c"]',
                   code=2, messages=("names 3 files, but the model has 2 embeddings",))
        bad.unlink()
        hugectr_files.write_rows_to_folder(bad, {1: (9, [0.0] * DIM)}, DIM, slots=True)
        self.train("refused", "--overwrite", "--set", f'solver.sparse_model_file=["","{bad}"]',
                   code=4, messages=("record 0 (key 1): slot 9, but the embedding has 4",))
        (bad / "slot_id").unlink()
        self.train("refused", "--overwrite", "--set", f'solver.sparse_model_file=["","{bad}"]',
                   code=2, messages=(f"{bad}/slot_id: missing",))

    def test_dry_run_describes_the_files(self):
        self.train("run")
        dense, sparse = self.names()
        flags = ["cistern", "train", self.config, "--dry-run", "--set",
                 f"solver.dense_model_file={dense}", "--set",
                 f"solver.sparse_model_file={json.dumps(list(map(str, sparse)))}"]
        weights = pathlib.Path(dense).stat().st_size // 4
        rows = [len(hugectr_files.rows_of_file(sparse[0], DIM)),
                len(hugectr_files.rows_of_file(sparse[1], DIM, slots=True))]
        self.assertEqual(self.run_ok(*flags, "--json").json()["starts_from"],
                         [{"file": str(dense), "weights": weights},
                          {"file": str(sparse[0]), "table": "first", "rows": rows[0]},
                          {"file": str(sparse[1]), "table": "second", "rows": rows[1]}])
        self.assertRegex(self.run_ok(*flags).out, rf"{dense} +{weights} weights +the layers\n")
        # A run that is refused because of them leaves nothing that would block the next run.
        out = self.folder / "fresh"
        self.train("fresh", "--set", "solver.dense_model_file=nowhere", code=2,
                   messages=("nowhere: no such file",))
        self.assertFalse(out.exists())

    def test_unwritable_snapshot_loses_nothing(self):
        whole = self.train("whole").json()
        (self.folder / "taken").write_text("a file where a folder is wanted", encoding="utf-8")
        result = run("cistern", "train", self.config, "--out", self.folder / "run", "--threads", 1,
                     "--set", f"solver.snapshot_prefix={self.folder}/taken/a")
        self.assertNotEqual(result.code, 0, str(result))
        self.assertIn(f"{self.folder}/taken", result.err)
        self.assertIn("--resume", result.err)
        rest = self.train("run", "--resume").json()
        self.assertEqual(rest["resumed_from"], 6)
        self.assertEqual(rest["loss"], whole["loss"])

    def test_snapshot_without_slots_is_refused_before_training(self):
        """The rows come from yesterday's data, and nothing tells the slots of their keys."""
        self.train("run")
        Samples(5, seed=3).write(self.train_file)
        more = ("--resume", "--more", self.train_file, "--set", "cistern.shuffle=false")
        self.train("run", *more, "--set", "solver.max_iter=18", code=2, messages=(
            "the first snapshot (solver.snapshot is 6, 0 writes none) would fail", "of embedding "
            "'second' occurs in no slot of", "set slot_size_array"))
        self.assertFalse((self.folder / "run" / "snapshot-18").exists())
        # Without a snapshot, the slots are not needed.
        rest = self.train("run", *more, "--set", "solver.max_iter=14", "--set",
                          "solver.snapshot=30").json()
        self.assertEqual(rest["iterations"], 14)

    def test_epochs_write_no_hugectr_files(self):
        self.train("run", "--set", "solver.max_iter=0", "--set", "solver.num_epochs=2")
        self.assertFalse(self.prefix.parent.exists())
        self.assertTrue((self.folder / "run" / "snapshot-6").is_dir())


if __name__ == "__main__":
    unittest.main()
