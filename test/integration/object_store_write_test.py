"""Writes data sets, models, exports and predictions to a real S3 server (object_store.py), and works with
models that are there. Nothing that was not written whole is visible."""

import csv
import json
import os
import pathlib
import random
import unittest

from object_store import KEY, SECRET, ObjectStoreTest
from programs import Servers, run


class ObjectStoreWrites(ObjectStoreTest):

    FILE_SAMPLES = 500

    def setUp(self):
        super().setUp()
        self.place = f"s3://data/{random.random()}"  # the server is the class's
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.environment["TMPDIR"] = str(self.temporary)

    def cistern(self, *words, code=0, messages=(), kept=0):
        result = run("cistern", *words, env=self.environment)
        for secret in (SECRET, KEY):
            self.assertNotIn(secret, result.out + result.err)
        self.expect(result, code, *messages)
        self.assertEqual(len(list(self.temporary.glob("cistern-*"))), kept)
        return result

    def objects(self, place):
        """The objects below a place, by name."""
        prefix = place.removeprefix("s3://data/")
        found = {}
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket="data", Prefix=prefix):
            for one in page.get("Contents", []):
                body = self.s3.get_object(Bucket="data", Key=one["Key"])["Body"].read()
                if not one["Key"].endswith("/"):  # the library marks folders by empty objects
                    found[one["Key"][len(prefix):].lstrip("/")] = body
        return found

    def files(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes()
                for path in folder.rglob("*") if path.is_file()}

    def write_csv(self):
        path = self.folder / "clicks.csv"
        draw = random.Random(3)
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["label", "city", "price"])
            for _ in range(400):
                out.writerow([draw.randrange(2), f"c{draw.randrange(9)}", draw.random()])
        return path

    def convert(self, out, *flags, **expected):
        return self.cistern("data", "convert", "--input", self.write_csv(), "--format", "csv", "--label",
                            "label", "--dense", "price", "--sparse", "city", "--min-count", 2,
                            "--samples-per-file", 100, "--out", out, *flags, **expected)

    def test_a_data_set_is_the_same_here_and_there(self):
        local = self.folder / "converted"
        self.convert(local)
        place = f"{self.place}/set"
        result = self.convert(place, "--json")
        self.assertEqual(self.objects(place), self.files(local))
        self.assertIn(place, result.out)
        self.assertNotIn(str(self.temporary), result.out + result.err)
        self.convert(place, code=2, messages=("holds 7 files already", "name another folder"))
        self.convert(place, "--overwrite", code=2, messages=("never replaced",))
        self.convert(f"file://{self.folder}/other")
        self.assertEqual(self.files(self.folder / "other"), self.files(local))

    def test_shards_are_packed_and_read(self):
        local, place = self.folder / "shards", f"{self.place}/shards"
        flags = ("data", "pack", "--model", self.config, "--set", "layers.data.source=s3://data/set/file_list.txt",
                 "--samples-per-shard", 400)
        self.cistern(*flags, "--out", local)
        self.cistern(*flags, "--out", place)
        there, here = self.objects(place), self.files(local)
        self.assertEqual(there.keys(), here.keys())
        for name in here:
            if name.endswith(".tar"):
                self.assertEqual(there[name], here[name])
        self.cistern("data", "inspect", f"{place}/data-*.tar", "--model", self.config, "--set",
                     "layers.data.format=Tar", "--set", "layers.data.check=None")

    def test_a_model_is_trained_there_and_used_from_there(self):
        run_place, local = f"{self.place}/run", self.folder / "run"
        self.write_model(lambda content: content["solver"].update(num_epochs=1))
        flags = ("train", self.config, "--durability", "none", "--out")  # fewer files
        self.cistern(*flags, local)
        self.cistern(*flags, run_place)
        there, here = self.objects(run_place), self.files(local)
        self.assertEqual({n: b for n, b in there.items() if n.startswith("model/")},
                         {n: b for n, b in here.items() if n.startswith("model/")})
        for name, content in there.items():
            self.assertNotIn(str(self.temporary).encode(), content, name)
        self.cistern(*flags, run_place, code=2, messages=("never replaced",))

        predictions = f"{self.place}/predictions.txt"
        self.cistern("predict", self.config, "--model", local, "--data", self.test_list, "--output",
                     self.folder / "expected.txt")
        self.cistern("predict", run_place, "--data", self.test_list, "--output", predictions)
        self.assertEqual(self.objects(predictions), {"": (self.folder / "expected.txt").read_bytes()})
        evaluated = [self.cistern("eval", self.config, "--model", place, "--json").json()["auc"]
                     for place in (local, f"{run_place}/model")]
        self.assertEqual(evaluated[0], evaluated[1])

        for form in ("onnx", "dnn-plugin", "xbox", "serving"):
            place = f"{self.place}/export-{form}"
            self.cistern("export", form, self.config, "--model", local, "--out", place)
            self.assertTrue(self.objects(place), form)
        donefile = self.objects(f"{self.place}/export-xbox")["donefile/base.txt"].decode()
        self.assertIn(f"{self.place}/export-xbox/", donefile)
        self.cistern("serving", "verify", f"{self.place}/export-serving")
        self.cistern("publish", self.config, "--follow", local, "--out", f"{self.place}/published", code=2,
                     messages=("is not on this machine",))
        self.cistern("export", "hugectr", self.config, "--model", run_place, "--out", f"{self.place}/h", code=2,
                     messages=("is not on this machine",))

    def test_a_table_is_trained_there_and_evaluated_from_there(self):
        place = f"{self.place}/table"
        self.cistern("train", self.write_csv(), "--label", "label", "--out", place, "--durability", "none",
                     "--set", "solver.num_epochs=1")
        found = self.objects(place)
        self.assertIn(f"{place}/data/train/file_list.txt".encode(), found["model.json"])
        for name, content in found.items():
            self.assertNotIn(str(self.temporary).encode(), content, name)
        self.cistern("eval", place)
        for flags in (("--resume",), ("--overwrite",)):
            self.cistern("train", place, *flags, code=2, messages=("a training cannot change", "add --out"))
        self.assertEqual(self.objects(place), found)

    def test_what_needs_a_folder_of_this_machine_refuses(self):
        for words in (("serve", self.place), ("ckpt", "repair-epochs", f"{self.place}/state"),
                      ("report", self.place)):
            self.cistern(*words, code=2, messages=("is not on this machine", "download it first"))

    def test_saved_models_and_servers(self):
        self.cistern("train", self.config, "--out", self.folder / "run")
        saved = f"{self.place}/saved"
        with Servers(2, self.folder) as servers:
            fleet = ("--servers", servers.addresses)
            self.cistern("load", *fleet, "--model", self.folder / "run", "--config", self.config)
            self.cistern("save", *fleet, "--to", saved)
            self.cistern("save", *fleet, "--to", saved, code=2, messages=("never replaced",))
            digests = self.cistern("status", *fleet, "--digest", "--json").json()["tables"]
        with Servers(3, self.folder) as servers:
            fleet = ("--servers", servers.addresses)
            self.cistern("load", *fleet, "--model", saved, "--config", self.config)
            loaded = self.cistern("status", *fleet, "--digest", "--json").json()["tables"]
        self.assertEqual([(table["name"], table["digest"]) for table in loaded],
                         [(table["name"], table["digest"]) for table in digests])

    def test_the_state_of_servers_is_pushed_and_pulled(self):
        out, back, place = self.folder / "run", self.folder / "back", f"{self.place}/fleet"
        self.cistern("train", self.config, "--out", out, "--durability", "commit")
        self.assertIn("it is whole", self.cistern("ckpt", "push", out, "--to", place).out)
        self.assertIn("0 files", self.cistern("ckpt", "push", out, "--to", place).out)
        self.assertTrue(any(name.startswith("state/manifest/") for name in self.objects(place)))
        self.cistern("ckpt", "pull", place, "--to", back)
        self.cistern("ckpt", "diff", out, back)
        self.cistern("verify", back)
        lost = next(name for name in self.objects(place) if "/data/" in name)
        self.s3.delete_object(Bucket="data", Key=f"{place.removeprefix('s3://data/')}/{lost}")
        self.cistern("ckpt", "pull", place, "--to", self.folder / "second", code=5, messages=(lost,))

    def test_a_cut_copy_leaves_nothing_visible_and_is_repeated(self):
        def cut(method, path, _):
            return "drop" if method in ("PUT", "POST") and "part-00002" in path else None
        place = f"{self.place}/set"
        self.proxy.disturb = cut
        result = self.convert(place, code=3, messages=(place, "is complete in"), kept=1)
        self.assertEqual(self.objects(place), {})
        kept = pathlib.Path(result.err.split("is complete in ")[1].split(":")[0])
        self.assertTrue((kept / "0/set/file_list.txt").exists())
        self.proxy.disturb = lambda *_: None
        self.convert(place, kept=1)
        self.assertIn("file_list.txt", self.objects(place))

    def test_what_a_killed_copy_left_is_replaced(self):
        place = f"{self.place}/set"
        prefix = place.removeprefix("s3://data/")
        for name in (".unfinished", "part-00000.norm", "stray"):
            self.s3.put_object(Bucket="data", Key=f"{prefix}/{name}", Body=b"old")
        self.cistern("eval", self.config, "--model", place, code=4, messages=("an unfinished copy",))
        self.convert(place)
        found = self.objects(place)
        self.assertNotIn("stray", found)
        self.assertNotIn(".unfinished", found)
        self.assertNotEqual(found["part-00000.norm"], b"old")

    def test_refusals_name_the_path(self):
        self.convert("s3://no-bucket/set", code=1, messages=("no-bucket",), kept=1)
        self.cistern("eval", self.config, "--model", f"{self.place}/none", code=2,
                     messages=(f"{self.place}/none does not exist",), kept=1)
        self.proxy.disturb = lambda method, path, count: 403
        self.convert(f"{self.place}/set", code=2, messages=("credentials",), kept=1)
        self.convert(f"s3://{KEY}:{SECRET}@data/set", code=2, messages=("environment",), kept=1)


if __name__ == "__main__":
    unittest.main()
