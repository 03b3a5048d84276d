"""Norm, Raw, Parquet and tar shards of the same samples train to the same bits; each refuses its own faults."""

import gzip
import json
import shutil
import struct
import sys
import unittest

from programs import ProgramTest, ROOT, has_parquet, run, wrapped, write_list

GOLDEN = ROOT / "test/golden/parquet"
sys.path.insert(0, str(GOLDEN))

from clicks import DENSE, SLOT_SIZES, clicks  # noqa: E402

TRAIN, TEST = clicks(0, 1000), clicks(1000, 300)
OFFSETS = [sum(SLOT_SIZES[:slot]) for slot in range(len(SLOT_SIZES))]


def write_norm(path, rows, labels=1):
    """Writes the keys that Raw and Parquet yield: each plus the sizes of all preceding slots. labels: of the header; the
    first dense features are labels, too."""
    with open(path, "wb") as file:
        header = struct.pack("<8q", 1, len(rows), labels, DENSE + 1 - labels, len(SLOT_SIZES), 0, 0, 0)
        file.write(wrapped(header, "Sum"))
        for label, dense, keys in rows:
            record = struct.pack(f"<{1 + DENSE}f", label, *dense)
            for key, offset in zip(keys, OFFSETS):
                record += struct.pack("<iI", 1, key + offset)
            file.write(wrapped(record, "Sum"))
    return path


def write_raw(path, rows):
    pattern = f"<{1 + DENSE}f{len(SLOT_SIZES)}I"
    path.write_bytes(b"".join(struct.pack(pattern, label, *dense, *keys)
                              for label, dense, keys in rows))
    return path


class DataFormats(ProgramTest):

    weighted = False  # the first dense feature is the weight of the sample

    def setUp(self):
        super().setUp()
        self.parquet = shutil.copytree(GOLDEN / "clicks", self.folder / "clicks")
        self.sources = {
            "Norm": (write_norm(self.folder / "a.norm", TRAIN),
                     write_norm(self.folder / "b.norm", TEST)),
            "Raw": (write_raw(self.folder / "a.bin", TRAIN),
                    write_raw(self.folder / "b.bin", TEST)),
            "Parquet": (write_list(self.folder / "parquet.txt",
                                   [self.parquet / "train_0.parquet",
                                    self.parquet / "train_1.parquet"]),
                        self.parquet / "test.parquet"),
        }

    def use(self, kind, **changes):
        def change(content):
            content["solver"].update(batchsize=128, batchsize_eval=77, num_epochs=3)
            content["cistern"] = {"shuffle": True, "pass_memory_mb": 1}
            data = content["layers"][0]
            data["source"], data["eval_source"] = map(str, self.sources[kind])
            data["sparse"][0]["max_feature_num_per_sample"] = len(SLOT_SIZES)
            if self.weighted:
                content["cistern"]["sample_weights"] = True
                data["dense"]["dense_dim"] = DENSE - 1
            if kind not in ("Norm", "Tar"):
                data.update(slot_size_array=SLOT_SIZES)
            if kind != "Norm":
                data.update(format=kind)
                del data["check"]
            if kind == "Raw":
                data.update(float_label_dense=True, num_samples=len(TRAIN),
                            eval_num_samples=len(TEST))
            data.update(changes)
        self.write_model(change)

    def train(self, name, *flags):
        return run("cistern", "train", self.config, "--out", self.folder / name, *flags)

    def need_parquet(self):
        if not has_parquet():
            self.skipTest("this build has no Parquet")

    def bits(self, kind, *flags):
        self.use(kind)
        run_folder = self.folder / (f"run-{kind}-weighted" if self.weighted else f"run-{kind}")
        self.expect(self.train(run_folder, *flags), 0)
        output = self.folder / f"{kind}.tsv"
        self.run_ok("cistern", "predict", self.config, "--model", run_folder, "--data",
                    self.sources[kind][1], "--output", output)
        events = [json.loads(line) for line in
                  (run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        losses = [(event["event"], event.get("iter"), event.get("loss"), event.get("auc"),
                   event.get("logloss")) for event in events]
        return output.read_bytes(), losses

    def test_raw_trains_to_the_same_bits_as_norm(self):
        expected = self.bits("Norm")
        self.assertEqual(len(expected[0].splitlines()), len(TEST))
        self.assertEqual(self.bits("Raw"), expected)

    def test_parquet_trains_to_the_same_bits_as_norm(self):
        self.need_parquet()
        self.assertEqual(self.bits("Parquet"), self.bits("Norm"))

    def pack(self):
        """Packs the Norm files; the keys of the shards are those of Norm."""
        self.use("Norm")
        for name, source in zip(("train", "test"), self.sources["Norm"]):
            self.run_ok("cistern", "data", "pack", "--model", self.config, "--set",
                        f"layers.data.source={source}", "--out", self.folder / name,
                        "--samples-per-shard", "300")
        self.sources["Tar"] = (self.folder / "train/data-{00000..00003}.tar",
                               self.folder / "test/data-*.tar")

    def test_tar_trains_to_the_same_bits_as_norm(self):
        expected = self.bits("Norm")
        self.pack()
        self.assertEqual(self.bits("Tar"), expected)

    def test_weights_are_the_same_in_every_format(self):
        unweighted = self.bits("Norm")
        self.weighted = True
        for path, rows in zip(self.sources["Norm"], (TRAIN, TEST)):
            write_norm(path, rows, labels=2)
        expected = self.bits("Norm")
        self.assertNotEqual(expected[0], unweighted[0])
        self.assertEqual(self.bits("Raw"), expected)
        self.pack()
        self.assertEqual(self.bits("Tar"), expected)
        if has_parquet():
            self.assertEqual(self.bits("Parquet"), expected)

    def test_compressed_norm_and_tar_train_to_the_same_bits(self):
        expected = self.bits("Norm")
        self.pack()
        for path in [*self.sources["Norm"], *self.folder.glob("t*/*.tar")]:
            path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        for path in self.folder.glob("run-*"):
            shutil.rmtree(path)
        self.assertEqual(self.bits("Norm"), expected)
        self.assertEqual(self.bits("Tar"), expected)

    def test_streams_train_to_the_same_bits_in_every_format(self):
        """There are fewer files than streams: they are divided by samples, whatever the files are."""
        streams = ("--set", "cistern.streams=6", "--set", "cistern.shuffle=false")
        expected = self.bits("Norm", *streams)
        self.assertNotEqual(expected, self.bits("Raw", "--set", "cistern.shuffle=false"))
        shutil.rmtree(self.folder / "run-Raw")
        self.assertEqual(self.bits("Raw", *streams), expected)
        self.pack()
        self.assertEqual(self.bits("Tar", *streams), expected)
        for path in [*self.sources["Norm"], *self.folder.glob("t*/*.tar")]:
            path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        for kind in ("Norm", "Tar"):
            shutil.rmtree(self.folder / f"run-{kind}")
            self.assertEqual(self.bits(kind, *streams), expected)
        self.need_parquet()
        self.assertEqual(self.bits("Parquet", *streams), expected)

    def test_a_run_in_streams_resumes_inside_a_file_to_the_same_bits(self):
        streams = ("--set", "cistern.streams=6", "--set", "cistern.shuffle=false", "--set", "solver.num_epochs=0")
        self.pack()
        whole = self.bits("Tar", *streams, "--set", "solver.max_iter=20")
        for resume, limit in enumerate((3, 11, 20)):
            self.expect(self.train(self.folder / "again", *streams, "--set", f"solver.max_iter={limit}",
                                   *["--resume"][:resume]), 0)
        output = self.folder / "again.tsv"
        self.run_ok("cistern", "predict", self.config, "--model", self.folder / "again", "--data",
                    self.sources["Tar"][1], "--output", output)
        self.assertEqual(output.read_bytes(), whole[0])

    def test_shuffled_shards_resume_to_the_same_bits(self):
        self.pack()
        shuffle = ("--set", "cistern.shuffle_files=true", "--set", "cistern.shuffle_buffer=150",
                   "--set", "solver.num_epochs=0",
                   # Within a pass, samples are shuffled among those that max_iter leaves in it.
                   "--set", "cistern.shuffle=false")
        plain = self.bits("Tar")
        shutil.rmtree(self.folder / "run-Tar")
        whole = self.bits("Tar", *shuffle, "--set", "solver.max_iter=20")
        self.assertNotEqual(whole, plain)
        for name, limits in (("stopped", (3, 11, 20)), ("again", (1, 8, 20))):
            for resume, limit in enumerate(limits):
                self.expect(self.train(self.folder / name, *shuffle, "--set",
                                       f"solver.max_iter={limit}", *["--resume"][:resume]), 0)
            output = self.folder / f"{name}.tsv"
            self.run_ok("cistern", "predict", self.config, "--model", self.folder / name, "--data",
                        self.sources["Tar"][1], "--output", output)
            self.assertEqual(output.read_bytes(), whole[0])

    def test_bad_shards_stop_or_are_counted(self):
        self.pack()
        self.use("Tar")
        shard = self.folder / "train/data-00001.tar"
        shard.write_bytes(shard.read_bytes()[:200000])
        (self.folder / "train/data-00003.tar").unlink()
        result = self.train("stop")
        self.assertNotEqual(result.code, 0)
        self.assertIn("data-00003.tar", result.err)
        result = self.train("skip", "--json", "--set", "cistern.on_bad_data=skip")
        self.expect(result, 0)
        self.assertEqual(result.json()["skipped_data"], {"cut short": 1, "missing": 1})
        self.assertIn("data-00001.tar is cut short", result.err)
        lines = (self.folder / "skip/metrics.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual(json.loads(lines[-1])["skipped_data"], {"cut short": 1, "missing": 1})

    def test_resumed_raw_run_ends_with_the_same_bits(self):
        expected = self.bits("Raw")
        self.use("Raw", cache_eval_data=True)
        folder = self.folder / "run-stopped"
        self.expect(self.train(folder, "--set", "solver.num_epochs=1"), 0)
        self.expect(self.train(folder, "--resume"), 0)
        output = self.folder / "stopped.tsv"
        self.run_ok("cistern", "predict", self.config, "--model", folder, "--data",
                    self.sources["Raw"][1], "--output", output)
        self.assertEqual(output.read_bytes(), expected[0])

    def test_truncated_raw_file(self):
        path = self.sources["Raw"][0]
        path.write_bytes(path.read_bytes()[:-5])
        self.use("Raw")
        self.expect(self.train("run"), 4, "a.bin", "whole number of samples", "28 bytes")
        self.assertFalse((self.folder / "run" / "model").exists())

    def test_raw_with_too_large_num_samples(self):
        self.use("Raw", num_samples=1001)
        self.expect(self.train("run"), 2, "num_samples is 1001", "1000 samples")

    def test_raw_key_outside_its_slot(self):
        path = self.sources["Raw"][0]
        content = bytearray(path.read_bytes())
        struct.pack_into("<I", content, 600 * 28 + 4 * (1 + DENSE + 2), SLOT_SIZES[2])
        path.write_bytes(content)
        self.use("Raw")
        self.expect(self.train("run"), 4, "a.bin: record 600: slot 2 of input 0: key 7",
                    "slot_size_array[2]")

    def test_parquet_faults(self):
        self.need_parquet()
        self.use("Parquet", slot_size_array=[50, 20, 5, 30])
        self.expect(self.train("key"), 4, ".parquet: row group 0, row", "'C3'",
                    "slot_size_array[2]")
        self.use("Parquet")
        (self.parquet / "_metadata.json").write_text('{"labels": []}', encoding="utf-8")
        self.expect(self.train("metadata"), 2, "_metadata.json", "label_dim")
        (self.parquet / "_metadata.json").unlink()
        path = self.parquet / "train_1.parquet"
        path.write_bytes(path.read_bytes()[:-20])
        self.expect(self.train("short"), 4, "train_1.parquet")

    def test_generated_data_trains_the_model(self):
        kinds = ["Norm", "Raw"]
        if "Arrow" in run("cistern", "version", "--json").json()["parquet"]:
            kinds.append("Parquet")
        losses = []
        for kind in kinds:
            with self.subTest(kind):
                self.use(kind)
                flags = ["--model", self.config, "--slot-sizes", ",".join(map(str, SLOT_SIZES)),
                         "--samples", 600, "--test-samples", 100, "--samples-per-file", 250]
                made = self.run_ok("cistern", "data", "generate", *flags, "--out",
                                   self.folder / f"made-{kind}", "--json").json()
                self.assertEqual(made["format"], kind)
                self.sources[kind] = made["source"], made["eval_source"]
                self.use(kind, **({"num_samples": 600, "eval_num_samples": 100}
                                  if kind == "Raw" else {}))
                if kind == "Norm":
                    self.set_key_type("I32")
                folder = self.folder / f"run-{kind}"
                self.expect(self.train(folder), 0)
                final = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
                losses.append(json.loads(final)["loss"])
        self.assertEqual(len(set(losses)), 1, losses)

    def set_key_type(self, kind):
        content = json.loads(self.config.read_text(encoding="utf-8"))
        content["solver"]["input_key_type"] = kind
        self.config.write_text(json.dumps(content), encoding="utf-8")

    def test_keysets_are_written_and_checked(self):
        self.use("Raw")
        keys = self.folder / "train.keyset"
        flags = ["cistern", "data", "keyset", "--model", self.config]
        made = self.run_ok(*flags, "--out", keys, "--json").json()
        distinct = {key + offset for _, _, row in TRAIN for key, offset in zip(row, OFFSETS)}
        self.assertEqual(made["keys"], len(distinct))
        content = keys.read_bytes()
        self.assertEqual(struct.unpack(f"<{len(distinct)}I", content), tuple(sorted(distinct)))
        self.run_ok(*flags, "--check", keys)
        keys.write_bytes(content[:-4])
        self.expect(run(*flags, "--check", keys), 4, f"lacks key {max(distinct)}")
        keys.write_bytes(content[:-1])
        self.expect(run(*flags, "--check", keys), 4, "whole number of 4-byte keys")
        self.expect(run(*flags), 2, "--out", "--check")
        self.expect(run(*flags, "--check", keys, "--input", "data2"), 2, "data1")

    def test_criteo_days_become_raw_data(self):
        days = [self.folder / f"day_{day}" for day in range(3)]
        for day, path in enumerate(days):
            lines = ["\t".join([str(i % 2), "", *map(str, range(12)), f"{i % 5:08x}",
                                *["ab"] * 24, f"{day}"]) for i in range(40)]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        made = self.run_ok("cistern", "data", "criteo", *days, "--format", "raw", "--out",
                           self.folder / "criteo", "--json").json()
        self.assertEqual((made["train_samples"], made["test_samples"]), (80, 40))
        self.assertEqual(made["slot_size_array"], [7] + [3] * 24 + [5])
        self.use("Raw", source=made["source"], num_samples=80,
                 dense={"top": "dense", "dense_dim": 13},
                 slot_size_array=made["slot_size_array"],
                 sparse=[{"top": "data1", "max_feature_num_per_sample": 26, "slot_num": 26}])
        seen = self.run_ok("cistern", "data", "inspect", "--model", self.config, "--set",
                           "layers.reshape1.leading_dim=104", "--json").json()
        self.assertEqual((seen["samples"], seen["slots"][0]["distinct"]), (80, 5))
        days[1].write_text("1\t2\n", encoding="utf-8")
        self.expect(run("cistern", "data", "criteo", *days, "--out", self.folder / "bad"), 4,
                    "day_1", "line 1", "fields")
        self.assertFalse((self.folder / "bad").exists())

    def test_inspect_reads_raw_with_a_model(self):
        self.use("Raw")
        seen = self.run_ok("cistern", "data", "inspect", "--model", self.config, "--json").json()
        self.assertEqual((seen["format"], seen["samples"]), ("Raw", len(TRAIN)))
        self.assertEqual([slot["distinct"] for slot in seen["slots"]],
                         [len({row[2][slot] for row in TRAIN}) for slot in range(4)])
        self.expect(run("cistern", "data", "inspect"), 2, "--model")


if __name__ == "__main__":
    unittest.main(verbosity=2)
