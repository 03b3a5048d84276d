"""Modes and formats of saved models, shrink, and models of other programs, with real servers."""

import gzip
import json
import shutil
import struct
import unittest

from programs import ProgramTest, Servers, run

CTR = {"accessor": "ctr", "embedx_threshold": 3,
       "optimizer": {"type": "AdaGradShared", "learning_rate": 0.05}}


def float32(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def records(data):
    """The records of a binary file: key and the bytes of its cells."""
    rows, at = {}, 0
    while at < len(data):
        length, key = struct.unpack_from("<IQ", data, at)
        rows[key] = data[at + 12:at + length]
        at += length
    assert at == len(data)
    return rows


class ModelFormats(ProgramTest):

    def setUp(self):
        super().setUp()
        self.saved = self.folder / "saved"
        self.runs = 0

    def with_ctr(self, **rules):
        self.write_model(lambda model: model.update(
            {"cistern": {"embeddings": {"deep": {**CTR, **rules}}}}))

    def train(self, servers, *flags):
        self.runs += 1
        self.run_ok("cistern", "train", self.config, "--no-save-model", "--continue", "--out",
                    self.folder / f"run-{self.runs}", "--servers", servers.addresses, *flags)

    def save(self, servers, name, *flags):
        return self.run_ok("cistern", "save", "--servers", servers.addresses, "--name", name,
                           "--json", *flags).json()

    def load(self, servers, name, *flags):
        return self.run_ok("cistern", "load", "--servers", servers.addresses, "--name", name,
                           "--json", *flags).json()

    def tables(self, servers):
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--json",
                             "--digest").json()
        return {table["name"]: table for table in status["tables"]}

    def digests(self, servers):
        return {name: table["digest"] for name, table in self.tables(servers).items()}

    def predict(self, servers):
        output = self.folder / "predictions.tsv"
        self.run_ok("cistern", "predict", self.config, "--data", self.test_file, "--output",
                    output, "--servers", servers.addresses)
        return output.read_bytes()

    def row(self, servers, key):
        return self.run_ok("cistern", "table", "show", "deep", key, "--servers",
                           servers.addresses, "--json").json()["fields"]

    def test_every_format_loads_on_three_servers_and_back(self):
        self.with_ctr()
        formats = [[], ["--gzip"], ["--format", "binary"], ["--format", "binary", "--gzip"]]
        with Servers(2, self.folder) as servers:
            self.train(servers)
            expected = self.digests(servers)
            for n, flags in enumerate(formats):
                self.save(servers, f"two-{n}", *flags)
        with Servers(3, self.folder) as servers:
            for n, flags in enumerate(formats):
                self.load(servers, f"two-{n}", "--replace")
                self.assertEqual(self.digests(servers), expected, flags)
                self.save(servers, f"three-{n}", *flags)
        with Servers(2, self.folder) as servers:
            for n, flags in enumerate(formats):
                self.load(servers, f"three-{n}", "--replace")
                self.assertEqual(self.digests(servers), expected, flags)
            # A worker process reads them, too, through its own connections to the servers.
            self.run_ok("cistern", "load", "--servers", servers.addresses, "--replace", "--model",
                        self.saved / "three-3", "--config", self.config)
            self.assertEqual(self.digests(servers), expected)

    def test_binary_rows_equal_text_rows(self):
        self.with_ctr()
        with Servers(1, self.folder) as servers:
            self.train(servers)
            self.save(servers, "text")
            self.save(servers, "zipped", "--gzip")
            self.save(servers, "binary", "--format", "binary")
        part = json.loads((self.saved / "binary" / "part-000-of-001.json").read_text())
        self.assertEqual((part["format"], part["mode"], part["rows"]), (2, "ALL", "BINARY"))
        plain = json.loads((self.saved / "text" / "part-000-of-001.json").read_text())
        self.assertEqual(plain["format"], 1)
        rows = 0
        for path in sorted((self.saved / "text" / "deep").iterdir()):
            text = path.read_bytes()
            zipped = self.saved / "zipped" / "deep" / (path.name + ".gz")
            self.assertEqual(gzip.decompress(zipped.read_bytes()), text)
            binary = records((self.saved / "binary" / "deep" / (path.name + ".bin")).read_bytes())
            lines = [line.split() for line in text.decode().splitlines()]
            self.assertEqual(sorted(int(line[0]) for line in lines), sorted(binary))
            for key, uid, unseen, delta, show, click, *cells in lines:
                head = [float32(unseen), float32(delta), float(show), float(click)]
                cells = [float32(cell) for cell in cells]
                expected = struct.pack("<2f2d3fQ", *head, *cells[:3], int(uid))
                expected += struct.pack(f"<{len(cells) - 3}f", *cells[3:])
                self.assertEqual(binary[int(key)], expected)
                rows += 1
        self.assertGreater(rows, 100)

    def test_modes_save_their_rows_and_reset_their_statistics(self):
        self.with_ctr(base_threshold=66, delta_threshold=1)  # about half of the rows
        for durability in ("none", "commit"):
            with self.subTest(durability=durability):
                shutil.rmtree(self.saved, ignore_errors=True)
                self.check_modes(durability)

    def check_modes(self, durability):
        with Servers(2, self.folder, durability=durability) as servers:
            self.train(servers)
            total = self.tables(servers)["deep"]["rows"]
            dense = sum(table["rows"] for name, table in self.tables(servers).items()
                        if name != "deep")
            base = self.save(servers, "base", "--mode", "base")
            self.assertGreater(base["rows"], dense)
            self.assertLess(base["rows"], total + dense)
            self.assertEqual(base["mode"], "base")
            # Nothing has changed since, so a delta contains no row of the ctr table.
            self.assertEqual(self.save(servers, "empty", "--mode", "delta")["rows"], dense)
            self.train(servers, "--set", "solver.num_epochs=1")
            delta = self.save(servers, "delta", "--mode", "delta", "--format", "binary")
            self.assertGreater(delta["rows"], dense)
            key = next(int(line.split()[0]) for path in (self.saved / "base" / "deep").iterdir()
                       for line in path.read_text().splitlines())
            self.assertEqual(self.row(servers, key)["delta_score"], 0)
            self.assertEqual(self.row(servers, key)["unseen_days"], 0)
            batch = self.save(servers, "batch", "--mode", "batch")
            self.assertEqual(batch["rows"], self.tables(servers)["deep"]["rows"] + dense)
            self.assertEqual(self.row(servers, key)["unseen_days"], 1)
            before = self.digests(servers)
        with Servers(2, self.folder, durability=durability) as servers:
            if durability == "commit":  # the saves committed their changes
                self.assertEqual(self.digests(servers), before)
            else:
                self.load(servers, "delta")
                self.assertEqual(self.tables(servers)["deep"]["rows"], delta["rows"] - dense)

    def test_shrink_removes_what_a_dry_run_counts(self):
        self.with_ctr(delete_threshold=66)
        for durability in ("none", "commit"):
            with self.subTest(durability=durability):
                shutil.rmtree(self.saved, ignore_errors=True)
                self.check_shrink(durability)

    def check_shrink(self, durability):
        with Servers(2, self.folder, durability=durability) as servers:
            self.train(servers)
            flags = ("cistern", "shrink", "--servers", servers.addresses, "--json")
            before = self.tables(servers)["deep"]
            dry = self.run_ok(*flags, "--dry-run").json()
            self.assertEqual(self.tables(servers)["deep"]["digest"], before["digest"])
            self.assertEqual(dry["rows"], before["rows"])
            self.assertGreater(dry["removed"], 0)
            self.assertLess(dry["removed"], dry["rows"])
            wet = self.run_ok(*flags).json()
            self.assertEqual(wet["removed"], dry["removed"])
            after = self.tables(servers)["deep"]
            self.assertEqual(after["rows"], before["rows"] - wet["removed"])
            self.train(servers, "--set", "solver.num_epochs=1")  # training can continue
            self.run_ok(*flags)
            after = self.digests(servers)
        if durability == "commit":
            with Servers(2, self.folder, durability=durability) as servers:
                self.assertEqual(self.digests(servers), after)

    def test_rows_with_days_require_the_day_flag(self):
        self.with_ctr(day_id_decay=True)
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "run"), 2,
                    "cistern.day")
        with Servers(1, self.folder) as servers:
            self.train(servers, "--set", "cistern.day=20700")
            self.assertEqual(self.row(servers, 7)["unseen_days"], 20700)
            show = self.row(servers, 7)["show"]
            flags = ("cistern", "shrink", "--servers", servers.addresses)
            self.expect(run(*flags, "--dry-run"), 2, "day_id_decay")
            self.run_ok(*flags, "--day", "20701")
            self.assertEqual(self.row(servers, 7)["show"], show)
            self.run_ok(*flags, "--day", "20731")
            self.assertEqual(self.tables(servers)["deep"]["rows"], 0)

    def test_upgrade_to_another_update_rule(self):
        with Servers(2, self.folder) as servers:
            self.train(servers)
            self.save(servers, "adam", "--format", "binary")
            expected = self.predict(servers)
        self.write_model(lambda model: model.update(
            {"cistern": {"embeddings": {"deep": {"optimizer": {"type": "SGD"}}}}}))
        flags = ("--config", self.config)
        with Servers(3, self.folder) as servers:
            load = ("cistern", "load", "--servers", servers.addresses, "--name", "adam")
            self.expect(run(*load, *flags), 2, "--config")
            self.run_ok(*load, *flags, "--upgrade")
            self.assertEqual(self.predict(servers), expected)
            self.run_ok("cistern", "load", "--servers", servers.addresses, "--replace", "--upgrade",
                        "--model", self.saved / "adam", *flags)
            self.assertEqual(self.predict(servers), expected)
            self.expect(run(*load, "--replace"), 1, "--upgrade")

    def test_upgrade_to_another_dim_keeps_rows_and_resets_dense_parameters(self):
        with Servers(2, self.folder) as servers:
            self.train(servers)
            self.save(servers, "narrow")
            rows = self.tables(servers)["deep"]["rows"]
            narrow = self.row(servers, 7)

        def widen(model):
            model["layers"][1]["sparse_embedding_hparam"]["embedding_vec_size"] = 6
            model["layers"][2]["leading_dim"] = 24
        self.write_model(widen)
        flags = ("--config", self.config)
        with Servers(3, self.folder) as servers:
            load = ("cistern", "load", "--servers", servers.addresses)
            result = self.run_ok(*load, "--name", "narrow", *flags, "--upgrade")
            self.assertIn("left out: table 'dense' (", result.out)
            self.assertEqual(self.tables(servers)["deep"]["rows"], rows)
            wide = self.row(servers, 7)
            self.assertEqual([wide[f"w[{i}]"] for i in range(4)],
                             [narrow[f"w[{i}]"] for i in range(4)])
            report = self.run_ok(*load, "--model", self.saved / "narrow", *flags, "--upgrade",
                                 "--replace", "--json").json()
            self.assertEqual([left["table"] for left in report["left_out"]], ["dense"])
            self.assertEqual(self.row(servers, 7), wide)
            self.train(servers)
            self.save(servers, "wide")
            # Servers with the wide table refuse the narrow model unless it is converted.
            self.expect(run(*load, "--name", "narrow", "--replace"), 1, "--upgrade")
        with Servers(1, self.folder) as servers:
            load = ("cistern", "load", "--servers", servers.addresses, "--name", "wide")
            self.expect(run(*load, "--tables", "deep,depe"), 1, "no table 'depe' here")
            report = self.run_ok(*load, "--tables", "deep", "--json").json()
            self.assertEqual(report["rows"], rows)
            self.assertEqual(report["left_out"], [{"table": "dense", "reason": "not asked for"}])

    def test_paddle_model_is_loaded(self):
        self.with_ctr()
        with Servers(1, self.folder) as servers:
            self.train(servers)
            self.save(servers, "own")
            expected = self.predict(servers)
        own, foreign = self.saved / "own", self.saved / "paddle"
        dense = next(path for path in own.iterdir() if path.is_dir() and path.name != "deep")
        rows = (dense / "part-000").read_text().splitlines(keepends=True)
        per = len(rows) // 3 + 1  # three servers
        (foreign / "000").mkdir(parents=True)
        for server in range(3):
            (foreign / "000" / f"part-{server:03}").write_text(
                "".join(rows[server * per:(server + 1) * per]))
        (foreign / "001").mkdir()
        for path in sorted((own / "deep").iterdir()):
            shard = int(path.name[-5:])
            lines = [line.split() for line in path.read_text().splitlines()]
            text = "".join(" ".join([key, *rest]) + "\n" for key, _, *rest in lines)  # no uid
            (foreign / "001" / f"part-{shard // 22:03}-{shard:05}.gz").write_bytes(
                gzip.compress(text.encode()))
        with Servers(2, self.folder) as servers:
            load = ("cistern", "load", "--servers", servers.addresses, "--name", "paddle",
                    "--foreign")
            self.expect(run(*load), 1, "--config")
            load += ("--config", self.config)
            self.expect(run(*load), 5, "--upgrade")
            self.run_ok(*load, "--upgrade")
            self.assertEqual(self.predict(servers), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
