"""`cistern export xbox`: another program reads its files, and bases and deltas of a fleet that trains
add up."""

import json
import math
import struct
import unittest

from programs import ProgramTest, Servers, run
from sequence_files import file_rows, result, rows_of

CTR = {"accessor": "ctr", "embedx_threshold": 3, "optimizer": {"type": "AdaGradShared"}}
DIM = 3  # of embedx


def nearest(x):
    """Rounds halves away from zero."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def float32(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


class ExportXbox(ProgramTest):

    def setUp(self):
        super().setUp()
        self.out = self.folder / "xbox"
        self.runs = 0

    def with_ctr(self, **rules):
        self.write_model(lambda model: model.update(
            {"cistern": {"embeddings": {"deep": {**CTR, **rules}}}}))

    def train(self, *flags):
        self.runs += 1
        run_folder = self.folder / f"run-{self.runs}"
        self.run_ok("cistern", "train", self.config, "--out", run_folder, "--threads", 1,
                    "--continue", *flags)
        return run_folder

    def export(self, *flags, code=0, messages=()):
        done = self.expect(run("cistern", "export", "xbox", self.config, "--out", self.out,
                               "--json", *flags), code, *messages)
        return done.json() if code == 0 else done

    def lines(self, folder):
        """{key: fields} of the saved table."""
        rows = {}
        for path in (folder / "model" / "deep").iterdir():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, *fields = line.split()
                rows[int(key)] = fields
        return rows

    def expected(self, folder):
        """The rows of a base, computed from the text of the saved table."""
        rows = {}
        for key, fields in self.lines(folder).items():
            _, _, _, show, click, weight = fields[:6]
            show, click = float(show), float(click)
            if (show - click) * 0.1 + click < 1.5:
                continue
            row = {"show": nearest(show), "click": nearest(click * 8),
                   "weight_lr_person": nearest(float32(weight) * 1024)}
            row = {name: number for name, number in row.items() if number != 0}
            if len(fields) > 8:  # embed_state is one number
                row["weight_mf"] = [nearest(float32(x) * 1024) for x in fields[-DIM:]]
            rows[key] = row
        return rows

    def test_another_program_reads_every_form(self):
        self.with_ctr(embedx_threshold=6)
        folder = self.train()
        expected = self.expected(folder)
        self.assertGreater(len(expected), 100)
        self.assertLess(len(expected), 200 + 1)
        self.assertIn("weight_mf", next(iter(expected.values())))
        digests = set()
        for form, compression in (("cube", "none"), ("hadoop", "none"), ("hadoop", "record"),
                                  ("hadoop", "block")):
            with self.subTest(form=form, compression=compression):
                done = self.export("--model", folder, "--seqfile", form, "--compress", compression,
                                   "--files", 3)
                self.assertFalse(done["updated"])
                version = self.out / str(done["id"])
                feature = version / "base" / "feature"
                self.assertEqual(sorted(path.name for path in feature.iterdir()),
                                 ["part-000", "part-001", "part-002"])
                rows = {key: result(value) for key, value in rows_of(feature).items()}
                self.assertEqual(rows, expected)
                for number, path in enumerate(sorted(feature.iterdir())):
                    found = file_rows(path)
                    self.assertEqual(found[:2], (form, compression))
                    for key, _ in found[2]:
                        self.assertEqual(struct.unpack("<Q", key)[0] % 3, number)
                manifest = json.loads((version / "xbox.json").read_text())
                self.assertEqual((manifest["kind"], manifest["rows"], manifest["table"]),
                                 ("base", len(expected), "deep"))
                self.assertEqual([f["bytes"] for f in manifest["files"]],
                                 [path.stat().st_size for path in sorted(feature.iterdir())])
                digests.add(manifest["digest"])
        self.assertEqual(len(digests), 1)
        done_lines = [json.loads(line) for line in
                      (self.out / "donefile" / "base.txt").read_text().splitlines()]
        ids = [int(line["id"]) for line in done_lines]
        self.assertEqual(ids, sorted(set(ids)))
        for line in done_lines:
            self.assertEqual(line["key"], line["id"])
            self.assertEqual(line["input"], str(self.out / line["id"] / "base"))

    def with_two_tables(self):
        """The slots of `deep` become two inputs, the second one of a table `wide`."""
        def change(model):
            data, deep, reshape, concat = model["layers"][:4]
            first = dict(data["sparse"][0], slot_num=2, max_feature_num_per_sample=4)
            data["sparse"] = [first, dict(first, top="data2")]
            wide = dict(deep, name="wide", top="wide", bottom="data2")
            flat = dict(reshape, name="reshape2", top="reshape2", bottom="wide", leading_dim=8)
            reshape["leading_dim"] = 8
            concat["bottom"] = ["reshape1", "reshape2", "dense"]
            model["layers"][2:2] = [wide, flat]
            model["cistern"] = {"embeddings": {"deep": CTR}}
        self.write_model(change)

    def test_several_tables_are_announced_at_once(self):
        self.with_two_tables()
        folder = self.train()
        first = self.export("--model", folder)
        second = self.export("--model", folder)
        for table in ("deep", "wide"):
            donefile = self.out / table / "donefile" / "base.txt"
            lines = [json.loads(line) for line in donefile.read_text().splitlines()]
            self.assertEqual([int(line["id"]) for line in lines], [first["id"], second["id"]])
            for line in lines:
                self.assertEqual(line["input"], str(self.out / table / line["id"] / "base"))
                self.assertGreater(len(rows_of(self.out / table / line["id"] / "base" / "feature")), 0)
            # Both names lead through the one link that an export replaces.
            self.assertEqual(donefile.readlink().parts[:3], ("..", "..", ".donefiles"))
        self.assertEqual(str((self.out / ".donefiles").readlink()), f".donefiles-{second['id']}")
        self.export("--model", folder, "--kind", "delta", code=2, messages=("wide", "embedding"))
        single = self.export("--model", folder, "--tables", "deep")
        self.assertIn(str(single["id"]), (self.out / "donefile" / "base.txt").read_text())

    def test_equal_states_give_equal_bytes(self):
        self.with_ctr()
        folder = self.train()
        bytes_of = []
        for name in ("a", "b"):
            done = self.expect(run("cistern", "export", "xbox", self.config, "--model", folder,
                                   "--out", self.folder / name, "--json"), 0).json()
            feature = self.folder / name / str(done["id"]) / "base" / "feature"
            bytes_of.append([path.read_bytes() for path in sorted(feature.iterdir())])
        self.assertEqual(*bytes_of)

    def test_rows_without_statistics_are_weights_only(self):
        folder = self.train()
        done = self.export("--state", folder)
        rows = rows_of(self.out / str(done["id"]) / "base" / "feature")
        lines = self.lines(folder)
        self.assertEqual(set(rows), set(lines))
        for key, fields in lines.items():
            self.assertEqual(result(rows[key]),
                             {"weight_mf": [nearest(float32(x) * 1024) for x in fields[:4]]})
        self.assertGreater(done["commit"], 0)
        self.export("--state", folder, "--kind", "delta", code=2,
                    messages=("accessor embedding", "export a base"))

    def test_a_fleet_exports_a_base_and_deltas(self):
        """base + deltas = a fresh base, except rows whose changes are below delta_threshold."""
        self.with_ctr(delta_threshold=2)
        with Servers(2, self.folder, durability="commit") as servers:
            fleet = ("--servers", servers.addresses)
            self.train(*fleet, "--set", "solver.num_epochs=1")
            self.export(*fleet, "--kind", "delta", code=2, messages=("names no base",))
            base = self.export(*fleet, "--update")
            self.assertTrue(base["updated"])
            self.assertGreater(base["commit"], 0)
            served = rows_of(self.out / str(base["id"]) / "base" / "feature")
            nothing = self.export(*fleet, "--kind", "delta")
            self.assertEqual(nothing["rows"], 0)
            grown = 0
            for epochs in (2, 3):
                self.train(*fleet, "--resume", "--set", f"solver.num_epochs={epochs}")
                again = self.export(*fleet, "--kind", "delta")  # changes nothing
                delta = self.export(*fleet, "--kind", "delta", "--update")
                self.assertEqual(again["tables"][0]["digest"], delta["tables"][0]["digest"])
                changed = rows_of(self.out / str(delta["id"]) / "patch" / "feature")
                grown += len(changed)
                served.update(changed)
            self.assertGreater(grown, 0)
            fresh_base = self.export(*fleet)
            fresh = rows_of(self.out / str(fresh_base["id"]) / "base" / "feature")
            self.check_served(servers, served, fresh)
            patches = [json.loads(line) for line in
                       (self.out / "donefile" / "patch.txt").read_text().splitlines()]
            self.assertEqual({line["key"] for line in patches}, {str(base["id"])})
            self.assertEqual(patches[0]["input"],
                             str(self.out / str(nothing["id"]) / "patch"))

    def check_served(self, servers, served, fresh):
        stale = 0
        for key, value in fresh.items():
            row = self.run_ok("cistern", "table", "show", "deep", key, "--servers",
                              servers.addresses, "--json").json()["fields"]
            if row["delta_score"] == 0:
                self.assertEqual(served.get(key), value, key)
            else:
                self.assertLess(row["delta_score"], 2)
                stale += 1
        self.assertLess(stale, len(fresh))

    def test_wrong_uses_are_refused_before_anything_is_written(self):
        self.with_ctr()
        folder = self.train()
        model = ("--model", folder)
        self.export(*model, "--update", code=2, messages=("--servers",))
        self.export(*model, "--compress", "block", code=2, messages=("Cube", "--seqfile=hadoop"))
        self.export(*model, "--files", 0, code=2, messages=("0 files",))
        self.export(*model, "--files", 501, code=2, messages=("501 files",))
        self.export(*model, "--tables", "depe", code=2, messages=("did you mean 'deep'",))
        self.export(*model, "--kind", "delta", code=2, messages=("names no base",))
        self.assertFalse(any(self.out.glob("*/base")))
        (self.out / "donefile").mkdir(parents=True, exist_ok=True)
        (self.out / "donefile" / "base.txt").write_text('{"id": 7}\n')
        self.export(*model, code=4, messages=("base.txt", "last line"))

    def test_the_cache_holds_the_rows_that_were_shown_most(self):
        self.with_ctr()
        cache = ("cistern", "export", "cache", self.config, "--out", self.folder / "cache",
                 "--files", 3, "--rate", 0.5, "--json")
        with Servers(2, self.folder) as servers:
            folder = self.train("--servers", servers.addresses)
            by_fleet = self.run_ok(*cache, "--servers", servers.addresses).json()["tables"][0]
            shown = {key: float(fields[3]) for key, fields in self.lines(folder).items()}
            self.check_cache(folder, by_fleet, shown, servers=2)
        by_files = self.run_ok(*cache, "--model", folder).json()["tables"][0]
        self.check_cache(folder, by_files, shown, servers=1)
        self.expect(run(*(0 if word == 0.5 else word for word in cache), "--model", folder), 2,
                    "a rate of 0")

    def test_servers_export_their_memory_caches(self):
        """The most shown rows of each shard, as of the last load or save of a batch model."""
        self.with_ctr()
        cache = ("cistern", "export", "cache", self.config, "--out", self.folder / "cache",
                 "--memory-cache", "--json")
        with Servers(2, self.folder, flags=("--cache_rate=0.4",)) as servers:
            folder = self.train("--servers", servers.addresses)
            fleet = ("--servers", servers.addresses)
            self.expect(run(*cache, *fleet), 1, "no memory cache")  # nothing was loaded yet
            self.run_ok("cistern", "save", *fleet, "--name", "batch", "--mode", "batch")
            table = self.run_ok(*cache, *fleet).json()["tables"][0]
        shown = {key: float(fields[3]) for key, fields in self.lines(folder).items()}
        expected = {}
        base = self.expected(folder)
        for shard in range(64):
            rows = sum(key % 2 == shard % 2 for key in shown)  # of the server
            k = max(1, int(rows * 0.4) // 32)
            ranked = sorted((key for key in shown if key % 64 == shard),
                            key=lambda key: (-shown[key], key))
            expected.update((key, base[key]) for key in ranked[:k] if key in base)
        found = {}
        place = self.folder / "cache" / "000_cache"
        for path in sorted(place.glob("part-*")):
            found.update((struct.unpack("<Q", key)[0], result(value))
                         for key, value in file_rows(path)[2])
        self.assertEqual(found, expected)
        self.assertGreater(len(expected), 30)
        self.assertEqual(table["threshold"], min(shown[key] for key in expected))
        self.assertEqual(json.loads((place / "cache.json").read_text())["source"], "memory caches")
        self.expect(run(*cache, "--model", folder), 2, "--servers")
        before = [path.read_bytes() for path in sorted(place.glob("part-*"))]
        with Servers(2, self.folder, flags=("--cache_rate=0.4",)) as servers:
            self.run_ok("cistern", "load", "--servers", servers.addresses, "--name", "batch")
            self.run_ok(*cache, "--servers", servers.addresses)
        self.assertEqual([path.read_bytes() for path in sorted(place.glob("part-*"))], before)
        with Servers(2, self.folder, flags=("--cache_rate=0.4",), durability="commit") as servers:
            self.train("--servers", servers.addresses)
        with Servers(2, self.folder, flags=("--cache_rate=0.4",), durability="commit") as servers:
            recovered = self.run_ok(*cache, "--servers", servers.addresses).json()["tables"][0]
        self.assertEqual(recovered["rows"], len(expected))

    def check_cache(self, folder, table, shown, servers):
        """The rule of docs/formats.md, with 64 shards; all 200 keys are distributed evenly."""
        local = []
        for server in range(servers):
            shards = range(server, 64, servers)
            rows = sum(key % 64 in shards for key in shown)
            k = max(1, int(rows * 0.5) // len(shards))
            tops = [sorted((show for key, show in shown.items() if key % 64 == shard),
                           reverse=True)[:k] for shard in shards]
            local.append(int(sum(top[-1] for top in tops if top) / len(shards)))
        threshold = sum(local) / len(local)
        self.assertEqual(table["threshold"], threshold)
        place = self.folder / "cache" / "000_cache"
        rows = {}
        for path in sorted(place.glob("part-*")):
            rows.update((struct.unpack("<Q", key)[0], result(value))
                        for key, value in file_rows(path)[2])
        expected = {key: row for key, row in self.expected(folder).items()
                    if shown[key] >= threshold}
        self.assertEqual(rows, expected)
        self.assertGreater(len(expected), 20)
        self.assertLess(len(expected), 180)
        self.assertEqual((place / "sparse_cache.meta").read_text(),
                         f"file_prefix:part\npart_num:3\nkey_num:{len(expected)}\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
