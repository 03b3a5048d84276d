"""Data sets from Python: the samples of a file, and the place after each batch."""

import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cistern_ps as cs
from program import run_cistern


def convert(folder, rows):
    """Rows (label, a, b) of integers as a data set; returns its file list."""
    path = pathlib.Path(folder)
    (path / "in.csv").write_text("label,a,b\n" + "".join(f"{l},{a},{b}\n" for l, a, b in rows))
    run_cistern("data", "convert", "--input", str(path / "in.csv"), "--out", str(path / "data"), "--label",
                "label", "--keys", "raw", "--key-bits", "64")
    return path / "data"


class DataSets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        rng = np.random.default_rng(7)
        cls.rows = [(int(l), int(a), int(b)) for l, a, b in
                    zip(rng.integers(0, 2, 1003), rng.integers(1, 50, 1003), rng.integers(100, 2**40, 1003))]
        cls.data = convert(cls.folder.name, cls.rows)

    def open(self, **more):
        options = {"slots": 2, "batch": 100, "wide_keys": True, **more}
        return cs.data.norm(self.data / "file_list.txt", **options)

    def read(self, data):
        return [(int(label), *map(int, keys)) for b in data
                for label, keys in zip(b.label, np.asarray(b.keys).reshape(-1, 2))]

    def test_every_sample_comes_once_and_in_order(self):
        data = self.open()
        sizes = [b.size for b in data]
        self.assertEqual(sizes, [100] * 10 + [3])
        self.assertEqual(self.read(self.open()), self.rows)
        batch = next(iter(self.open()))
        np.testing.assert_array_equal(batch.offsets, np.arange(201))
        self.assertEqual((batch.label.dtype, batch.keys.dtype, batch.offsets.dtype, batch.dense.shape),
                         (np.float32, np.int64, np.int32, (100, 0)))

    def test_a_loaded_place_continues_with_the_same_batches(self):
        for shuffle in (None, 5):
            for stop in (0, 1, 10, 11, 12, 21, 22):
                with self.subTest(shuffle=shuffle, stop=stop):
                    whole = [b.keys.tolist() for b in self.open(epochs=2, shuffle=shuffle)]
                    first, got = self.open(epochs=2, shuffle=shuffle), []
                    for batch in first:
                        if len(got) == stop:
                            break
                        got.append(batch.keys.tolist())
                        state = first.state_dict()
                    rest = self.open(epochs=2, shuffle=shuffle)
                    if stop:
                        rest.load_state_dict(state)
                    got += [b.keys.tolist() for b in rest] if stop < 22 else []
                    self.assertEqual(got, whole)

    def test_shuffling_keeps_the_samples_and_changes_with_seed_and_epoch(self):
        one, two = self.read(self.open(shuffle=1)), self.read(self.open(shuffle=2))
        self.assertEqual(sorted(one), sorted(self.rows))
        self.assertNotEqual(one, two)
        both = self.read(self.open(shuffle=1, epochs=2))
        self.assertEqual(both[:1003], one)
        self.assertNotEqual(both[1003:], one)

    def test_the_head_of_a_table_is_what_training_reads(self):
        path = pathlib.Path(self.folder.name)
        (path / "head.jsonl").write_text('{"click": 1, "user": {"id": 7}}\n{"click": 0, "user": {"id": 8}}\n')
        head = cs.data.head(path / "head.jsonl", rows=1)
        self.assertEqual((head["columns"], head["rows"]), (["click", "user.id"], [["1", "7"]]))
        (path / "head.txt").write_text("1;u1\n0;u2\n")
        head = cs.data.head([path / "head.txt"], delimiter=";", columns=["y", "user"])
        self.assertEqual((head["columns"], head["rows"]), (["y", "user"], [["1", "u1"], ["0", "u2"]]))
        with self.assertRaisesRegex(cs.UsageError, "none.csv"):
            cs.data.head(path / "none.csv")
        with self.assertRaisesRegex(cs.UsageError, "the list of tables is empty"):
            cs.data.head([])
        with self.assertRaisesRegex(cs.UsageError, "config: an empty list"):
            cs.train([], out=path / "run")
        with self.assertRaisesRegex(cs.UsageError, "label"):
            cs.data.head(path / "head.txt", label="y")

    def test_drop_last_leaves_out_what_fills_no_batch(self):
        self.assertEqual([b.size for b in self.open(drop_last=True)], [100] * 10)

    def test_errors_name_the_file(self):
        with self.assertRaisesRegex(cs.Error, "nowhere"):
            next(iter(cs.data.norm("/nowhere.txt", slots=2)))
        with self.assertRaisesRegex(cs.Error, "slot"):
            next(iter(cs.data.norm(self.data / "file_list.txt", slots=3, wide_keys=True)))

    def test_parquet_files_have_the_columns_that_pyarrow_reads(self):
        try:
            import pyarrow.parquet as pq
        except ImportError as missing:
            self.skipTest(str(missing))
        folder = pathlib.Path(__file__).resolve().parents[1] / "golden/parquet/clicks"
        labels, dense, keys = ["label"], ["I1", "I2"], ["C1", "C2", "C3", "C4"]
        table = pq.read_table(folder / "train_0.parquet")
        expected = {n: np.asarray(table[n].to_numpy()) for n in labels + dense + keys}
        data = cs.data.parquet(folder / "train_0.parquet", slots=len(keys), dense=len(dense), label=len(labels), batch=64)
        batches = list(data)
        label = np.concatenate([b.label.reshape(-1, len(labels)) for b in batches])
        np.testing.assert_array_equal(label, np.stack([expected[n] for n in labels], 1).astype(np.float32))
        np.testing.assert_array_equal(np.concatenate([b.dense for b in batches]),
                                      np.stack([expected[n] for n in dense], 1).astype(np.float32))
        np.testing.assert_array_equal(np.concatenate([b.keys for b in batches]).reshape(-1, len(keys)),
                                      np.stack([expected[n] for n in keys], 1))

    def test_every_format_continues_within_a_file_and_an_epoch(self):
        def generated(format, *more):
            folder = pathlib.Path(self.folder.name, format)
            run_cistern("data", "generate", "--out", str(folder), "--samples", "307", "--dense", "2", "--slots", "3",
                        "--format", format, "--samples-per-file", "100", *more)
            return folder / "train"

        def arrays(batches):
            return [(b.label.tolist(), b.dense.tolist(), b.keys.tolist(), b.offsets.tolist()) for b in batches]

        text = pathlib.Path(self.folder.name, "log.csv")
        text.write_text("click,age,city\n" + "".join(f"{i % 2},{i},c{i % 7}\n" for i in range(307)))
        shape = {"slots": 3, "dense": 2, "batch": 40, "epochs": 2}
        norm, raw = generated("norm"), generated("raw")
        model = pathlib.Path(self.folder.name, "model.json")
        builder = cs.model.Model(batchsize=40, num_epochs=1, input_key_type="I64")
        builder.data(norm / "file_list.txt", {"features": 3}, dense=2)
        builder.loss(builder.fc(builder.reshape(builder.embedding("features", 2), 6), 1))
        builder.save(model)
        shards = pathlib.Path(self.folder.name, "shards")
        run_cistern("data", "pack", "--model", str(model), "--out", str(shards), "--samples-per-shard", "100")
        formats = {
            "norm": lambda: cs.data.norm(norm / "file_list.txt", wide_keys=True, **shape),
            "raw": lambda: cs.data.raw(raw / "data.bin", num_samples=307, **shape),
            "csv": lambda: cs.data.csv(text, label="click", dense=["age"], batch=40, epochs=2),
            "tar": lambda: cs.data.tar(shards / "file_list.txt", **shape),
        }
        try:
            parquet = generated("parquet")
            formats["parquet"] = lambda: cs.data.parquet(parquet / "file_list.txt", **shape)
        except cs.Error as error:
            print(f"skipped: parquet: {error}")
        for name, make in formats.items():
            whole = arrays(make())
            self.assertEqual(len(whole), 16, name)
            for stop in (1, 3, 7, 8, 9, 15):
                with self.subTest(name, stop=stop):
                    first, rest = make(), make()
                    batches = iter(first)
                    begun = arrays(next(batches) for _ in range(stop))
                    rest.load_state_dict(first.state_dict())
                    self.assertEqual(begun + arrays(rest), whole)
        self.assertEqual(arrays(formats["tar"]()), arrays(formats["norm"]()))

    def test_text_is_converted_once_and_again_if_it_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "log.csv")
            path.write_text("click,age,city\n1,30,rome\n0,20,oslo\n1,25,rome\n")
            options = {"label": "click", "dense": ["age"], "dense_transform": "none"}
            (batch,) = cs.data.csv(path, **options)
            self.assertEqual((batch.label.tolist(), batch.dense.tolist()), ([1, 0, 1], [[30], [20], [25]]))
            self.assertEqual(batch.keys[0], batch.keys[2])
            note = pathlib.Path(f"{path}.norm", "cistern_ps.json")
            before = note.stat().st_mtime_ns
            list(cs.data.csv(path, **options))
            self.assertEqual(note.stat().st_mtime_ns, before)
            path.write_text(path.read_text() + "0,40,oslo\n")
            (batch,) = cs.data.csv(path, **options)
            self.assertEqual(batch.label.tolist(), [1, 0, 1, 0])
            for half_written in ("", note.read_text()[:50], "[]", "{}"):
                note.write_text(half_written)
                (batch,) = cs.data.csv(path, **options)
                self.assertEqual(batch.label.tolist(), [1, 0, 1, 0])
            self.assertEqual([p.name for p in note.parent.glob("cistern_ps*")], [note.name])

    def test_processes_that_begin_at_once_convert_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "log.csv")
            path.write_text("click,age,city\n" + "1,30,rome\n0,20,oslo\n" * 20_000)
            code = ("import sys; import cistern_ps as cs; "
                    "print(sum(b.size for b in cs.data.csv(sys.argv[1], label='click', dense=['age'])))")
            readers = [subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True) for _ in range(3)]
            for reader in readers:
                out, err = reader.communicate()
                self.assertEqual((reader.returncode, out), (0, "40000\n"), err)

    def test_paths_may_hold_commas(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("lr=0.1,dim=8/a.csv", "lr=0.1,dim=9/b.csv", "c.csv")]
            for i, path in enumerate(paths):
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"click,age,city\n1,{i}0,rome\n0,{i}5,oslo\n")
            options = {"label": "click", "dense": ["age"], "dense_transform": "none"}
            for source, ages in ((paths[0], [0, 5]), (str(paths[1]), [10, 15]), (paths, [0, 5, 10, 15, 20, 25])):
                made = cs.data.convert(source, pathlib.Path(folder, f"out-{len(ages)}-{ages[0]}"), **options)
                self.assertEqual(made["samples"], len(ages))
                (batch,) = cs.data.csv(source, pathlib.Path(folder, f"csv,{len(ages)},{ages[0]}"), **options)
                self.assertEqual([age for (age,) in batch.dense.tolist()], ages)

    def test_packs_text_into_shards(self):
        with tempfile.TemporaryDirectory() as folder:
            table, shards = pathlib.Path(folder, "rows.csv"), pathlib.Path(folder, "shards")
            table.write_text("label,a\n" + "".join(f"{i % 2},x{i}\n" for i in range(7)))
            made = cs.data.pack(table, shards, samples_per_shard=3)
            self.assertEqual((made["samples"], made["shards"]), (7, 3))
            self.assertEqual(made["bytes"], sum(path.stat().st_size for path in shards.glob("*.tar")))
            with self.assertRaisesRegex(cs.UsageError, "data.pack has no option 'samples'"):
                cs.data.pack(table, pathlib.Path(folder, "no"), samples=3)
            with self.assertRaisesRegex(cs.UsageError, r"overrides need a model \(set=, model=\)"):
                cs.data.pack(table, pathlib.Path(folder, "no"), set={"solver.batchsize": 4})

    def test_prepares_criteos_days(self):
        with tempfile.TemporaryDirectory() as folder:
            days = [pathlib.Path(folder, f"day_{day}") for day in range(2)]
            for day in days:
                day.write_text("".join("\t".join([str(row % 2)] + [str(row)] * 13 + [f"a{row}"] * 26) + "\n" for row in range(3)))
            made = cs.data.criteo(days, pathlib.Path(folder, "out"), key_bits=64, cross=["C1_C2"], dense="log1", shuffle=False)
            self.assertEqual((made["train_samples"], made["test_samples"], made["slots"], made["wide_slots"]), (3, 3, 27, 1))
            (batch,) = cs.data.norm(made["source"], slots=[1, 26], dense=13, wide_keys=True, check_sum=True)
            self.assertEqual(batch.label.tolist(), [0, 1, 0])
            np.testing.assert_allclose(batch.dense[:, 0], np.log1p([0, 1, 2]), rtol=1e-6)
            with self.assertRaisesRegex(cs.UsageError, r"'C1_C27': expected two columns.* \(cross=\)"):
                cs.data.criteo(days, pathlib.Path(folder, "no"), cross=["C1_C27"])

    def test_batches_may_be_kept(self):
        batches = list(self.open())
        self.assertEqual([int(b.label.sum()) for b in batches],
                         [sum(r[0] for r in self.rows[i:i + 100]) for i in range(0, 1003, 100)])

    def test_weights_of_samples_are_not_among_the_labels(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "in.csv")
            path.write_text("click,w,city\n1,2.5,rome\n0,0,oslo\n1,1,rome\n")
            (batch,) = cs.data.csv(path, label="click", weight="w")
            self.assertEqual((batch.label.tolist(), batch.weight.tolist()), ([1, 0, 1], [2.5, 0, 1]))
            self.assertEqual((batch.label.dtype, batch.weight.dtype), (np.float32, np.float32))
            files = path.with_name("in.csv.norm") / "file_list.txt"
            (again,) = cs.data.norm(files, slots=1, wide_keys=True, sample_weight=True)
            self.assertEqual(again.weight.tolist(), [2.5, 0, 1])
            (labels,) = cs.data.norm(files, slots=1, wide_keys=True, label=2)
            self.assertEqual((labels.label.tolist(), labels.weight), ([[1, 2.5], [0, 0], [1, 1]], None))
        self.assertIsNone(next(iter(self.open())).weight)

    def test_weights_of_keys_are_beside_the_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "in.csv")
            path.write_text("click,city,tags\n1,rome,a:0.5|b:-3\n0,oslo,\n1,rome,a\n")
            (batch,) = cs.data.csv(path, label="click", key_weights=["tags"])
            self.assertEqual(batch.offsets.tolist(), [0, 1, 3, 4, 4, 5, 6])
            self.assertEqual((batch.key_weights[0].tolist(), batch.key_weights[0].dtype), ([1, 0.5, -3, 1, 1, 1], np.float32))
            files = path.with_name("in.csv.norm") / "file_list.txt"
            for given in (True, [True]):
                (again,) = cs.data.norm(files, slots=2, wide_keys=True, key_weights=given, shuffle=3)
                self.assertEqual(sorted(again.key_weights[0].tolist()), [-3, 0.5, 1, 1, 1, 1])
            with self.assertRaisesRegex(cs.Error, "slot_num"):
                list(cs.data.norm(files, slots=2, wide_keys=True))
            with self.assertRaisesRegex(cs.UsageError, "key_weights: 2 of them for 1 inputs"):
                cs.data.norm(files, slots=2, key_weights=[True, False])
            raw = pathlib.Path(folder, "a.bin")
            raw.write_bytes(struct.pack("<i2Iffi2Iff", 1, 5, 6, 0.5, -3, 0, 7, 8, 1, 2))
            (batch,) = cs.data.raw(raw, slots=[1, 1], num_samples=2, key_weights=True)
            self.assertEqual([w.tolist() for w in batch.key_weights], [[0.5, 1], [-3, 2]])
            (batch,) = cs.data.raw(raw, slots=[1, 3], num_samples=2)
            self.assertIsNone(batch.key_weights)
        self.assertIsNone(next(iter(self.open())).key_weights)

    def test_weighted_metrics(self):
        label, score, weight = [0, 1, 1, 0, 1], [0.2, 0.3, 0.8, 0.8, 0.6], [1, 0, 2, 0.5, 4]
        # scikit-learn's roc_auc_score and log_loss with sample_weight
        self.assertAlmostEqual(cs.metrics.auc(label, score, weight), 0.7222222222222223, 12)
        self.assertAlmostEqual(cs.metrics.logloss(label, score, weight), 0.468993614029819, 12)

    def test_torch_tensors_share_memory(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is missing")
        batch = next(iter(self.open()))
        tensors = batch.torch()
        tensors.keys[0] = 12
        self.assertEqual((batch.keys[0], tensors.label.dtype), (12, torch.float32))
        used = self.open()
        next(iter(used))
        self.assertEqual(pickle.loads(pickle.dumps(used)).state_dict(), used.state_dict())
        used.load_state_dict({"epoch": 0, "samples": 0})
        again = torch.utils.data.DataLoader(cs.torch.IterableDataSet(used), batch_size=None, num_workers=1)
        self.assertEqual(self.read(again), self.rows)
        loader = torch.utils.data.DataLoader(cs.torch.IterableDataSet(self.open()), batch_size=None, num_workers=1)
        self.assertEqual(self.read(loader), self.rows)


if __name__ == "__main__":
    unittest.main()
