"""Each kind of bad input gives its exit code and a message with the fault, its place and the reason."""

import socket
import struct
import subprocess
import unittest

from programs import BIN, ProgramTest, Samples, Servers, run, start, finish, wait_for


class BadModelFile(ProgramTest):
    """Exit code 2; nothing is written."""

    def expect_refusal(self, change, *messages):
        self.write_model(change)
        out = self.folder / "run"
        result = run("cistern", "train", self.config, "--out", out)
        self.expect(result, 2, "error: ", *messages)
        self.assertFalse((out / "model").exists())

    def test_misspelt_key(self):
        def change(content):
            content["solver"]["batchsiz"] = content["solver"].pop("batchsize")
        self.expect_refusal(change, "model.json", "solver.batchsiz", "did you mean 'batchsize'")

    def test_undefined_bottom(self):
        def change(content):
            content["layers"][4]["bottom"] = "concat9"
        self.expect_refusal(change, "concat9")

    def test_wrong_dim_in_a_layer(self):
        def change(content):
            content["layers"][2]["leading_dim"] = 15
        self.expect_refusal(change, "15")

    def test_wrong_dim_of_the_data(self):
        def change(content):
            content["layers"][0]["dense"]["dense_dim"] = 3
        self.expect_refusal(change, "train.norm")

    def test_missing_model_file(self):
        self.expect(run("cistern", "train", self.folder / "no.json", "--out", self.folder / "run"),
                    2, "no.json")

    def test_override_of_an_unknown_key(self):
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "run",
                        "--set", "solver.max_itre=5"), 2, "max_itre", "max_iter")


class NothingIsLeftBehind(ProgramTest):
    """A refused run does not prevent the next one."""

    def refused(self, code, *messages):
        out = self.folder / "run"
        self.expect(run("cistern", "train", self.config, "--out", out), code, *messages)
        return out

    def test_refusal_before_the_run_leaves_no_folder(self):
        changes = [
            (lambda content: content["layers"][4].update(bottom="concat9"), 2, "concat9"),
            (lambda content: content["layers"][4].update(bottom="fc2"), 2, "closes a cycle"),
            (lambda content: content["layers"][0].update(source="no.txt"), 2,
             "layers[0].source: data 'no.txt': cannot open"),
            (lambda content: content["layers"][0].update(eval_source="no.txt"), 2,
             "layers[0].eval_source: data 'no.txt': cannot open"),
            (lambda content: content["layers"][0]["dense"].update(dense_dim=3), 2, "dense_dim 3"),
        ]
        for change, code, *messages in changes:
            self.write_model(change)
            self.assertFalse(self.refused(code, "model.json", *messages).exists())

    def test_data_without_a_sample(self):
        for key in ("source", "eval_source"):
            Samples(0).write(self.folder / "none.norm")
            self.write_model(lambda content: content["layers"][0].update(
                {key: str(self.folder / "none.norm")}))
            self.assertFalse(self.refused(4, f"layers[0].{key}", "holds no sample").exists())

    def test_run_without_a_commit_can_be_replaced(self):
        content = self.train_file.read_bytes()
        self.train_file.write_bytes(content[:-5])
        self.assertTrue((self.refused(4, "cut short") / "state").exists())
        self.train_file.write_bytes(content)
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run")
        self.refused(2, "already holds the state of a run")

    def test_keyset_without_a_key_of_the_data(self):
        keyset = self.folder / "train.keyset"
        self.run_ok("cistern", "data", "keyset", "--model", self.config, "--out", keyset)
        self.write_model(lambda content: (content["solver"].update(num_epochs=1),
                                          content["layers"][0].update(keyset=[str(keyset)])))
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "whole")
        _, _, keys = Samples(self.SAMPLES, seed=1).rows[700]
        cells = [cell for cell, in struct.iter_unpack("<I", keyset.read_bytes())]
        cells.remove(keys[2][0])
        keyset.write_bytes(struct.pack(f"<{len(cells)}I", *cells))
        out = self.refused(4, "train.norm: record ", "slot 2 of input 0: key %d is not in the "
                           "keyset" % keys[2][0], str(keyset), "cistern data keyset")
        self.assertFalse((out / "model").exists())
        keyset.unlink()
        self.refused(2, "train.keyset")

    def test_keys_outside_the_slots_of_a_one_hot_embedding(self):
        self.write_model(lambda content: (
            content["layers"][1].update(type="LocalizedSlotSparseEmbeddingOneHot"),
            content["layers"][1]["sparse_embedding_hparam"].update(
                slot_size_array=[51, 50, 50, 20])))
        self.run_ok("cistern", "data", "generate", "--model", self.config, "--out",
                    self.folder / "data", "--samples", 300, "--test-samples", 100)
        self.refused(4, "train.norm: record ", "slot 3 of input 0: key ",
                     "is outside [151, 171) that slot_size_array[3]")
        # Data generated for the model stays within the slots.
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "good",
                    "--set", f"layers.0.source={self.folder / 'data/train/file_list.txt'}",
                    "--set", f"layers.0.eval_source={self.folder / 'data/test/file_list.txt'}")


class BadData(ProgramTest):
    """Exit code 4; neither a model nor a prediction file appears."""

    RECORD = 700

    def edit(self, change):
        content = bytearray(self.train_file.read_bytes())
        content = change(content, self.offsets[self.RECORD]) or content
        self.train_file.write_bytes(content)

    def rewrap(self, content, at):
        """Recomputes the check byte of a record."""
        length = struct.unpack_from("<i", content, at)[0]
        content[at + 4 + length] = sum(content[at + 4:at + 4 + length]) % 256

    def expect_refusal(self, *messages):
        out = self.folder / "run"
        result = run("cistern", "train", self.config, "--out", out)
        self.expect(result, 4, "train.norm", str(self.RECORD), *messages)
        self.assertFalse((out / "model").exists())

    def test_truncated_file(self):
        self.edit(lambda content, at: content[:at + 20])
        self.expect_refusal()

    def test_flipped_byte_under_sum(self):
        def flip(content, at):
            content[at + 9] ^= 0x10
        self.edit(flip)
        self.expect_refusal()

    def test_more_keys_than_the_bound(self):
        def grow(content, at):
            struct.pack_into("<i", content, at + 4 + 12, 1000)
            self.rewrap(content, at)
        self.edit(grow)
        self.expect_refusal("1000")

    def test_reserved_key(self):
        def reserve(content, at):
            struct.pack_into("<I", content, at + 4 + 12 + 4, 0xFFFFFFFF)
            self.rewrap(content, at)
        self.edit(reserve)
        self.expect_refusal("4294967295")

    def test_prediction_of_bad_data_leaves_no_file(self):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run")
        self.edit(lambda content, at: content[:at + 20])
        output = self.folder / "predictions.tsv"
        result = run("cistern", "predict", self.config, "--model", self.folder / "run",
                     "--data", self.train_file, "--output", output)
        self.expect(result, 4, "train.norm", str(self.RECORD))
        self.assertFalse(output.exists())


class BadCheckpoint(ProgramTest):
    """Exit code 5."""

    def setUp(self):
        super().setUp()
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run")
        self.part = max((self.folder / "run" / "model" / "deep").iterdir(),
                        key=lambda path: path.stat().st_size)

    def expect_refusal(self):
        result = run("cistern", "eval", self.config, "--model", self.folder / "run")
        self.expect(result, 5, self.part.name)

    def test_flipped_byte(self):
        content = bytearray(self.part.read_bytes())
        content[len(content) // 2] ^= 0x01
        self.part.write_bytes(content)
        self.expect_refusal()

    def test_cut_short(self):
        self.part.write_bytes(self.part.read_bytes()[:-10])
        self.expect_refusal()

    def test_missing_file(self):
        self.part.unlink()
        self.expect_refusal()

    def test_another_model(self):
        result = run("cistern", "eval", self.config, "--model", self.folder / "run",
                     "--set", "layers.deep.sparse_embedding_hparam.embedding_vec_size=8",
                     "--set", "layers.reshape1.leading_dim=32")
        self.expect(result, 2, "deep")

    def test_no_model(self):
        result = run("cistern", "eval", self.config, "--model", self.folder)
        self.expect(result, 2, "holds a saved model", "fix: ")


class BadFleet(ProgramTest):

    def train(self, servers, *flags, name="run"):
        return run("cistern", "train", self.config, "--out", self.folder / name, "--servers",
                   servers, "--connect-timeout", 2, "--continue", *flags)

    def test_server_down_at_start(self):
        with Servers(2, self.folder) as servers:
            servers.all[1].kill()
            down = servers.all[1].address
            self.expect(self.train(servers.addresses), 3, down, "fix: ")
            status = run("cistern", "status", "--servers", servers.addresses, "--json")
            self.expect(status, 3, down)
            self.assertEqual([server["state"] for server in status.json()["servers"]],
                             ["ready", "down"])

    def test_server_killed_during_a_pass(self):
        self.write_model(lambda content: content["solver"].update(num_epochs=100000))
        with Servers(2, self.folder) as servers:
            metrics = self.folder / "run" / "metrics.jsonl"
            worker = start("cistern", "train", self.config, "--out", self.folder / "run",
                           "--servers", servers.addresses, "--connect-timeout", 2,
                           "--set", "cistern.pass_memory_mb=1")
            wait_for(lambda: metrics.exists() and '"event":"pass"' in metrics.read_text(),
                     "a committed pass")
            servers.all[1].kill()
            result = self.expect(finish(worker), 3, servers.all[1].address)
            self.assertIn("fix: ", result.err)
            # The surviving server holds the last commit, and no part of the unfinished pass.
            status = run("cistern", "status", "--servers", servers.all[0].address, "--json")
            server = status.json()["servers"][0]
            self.assertGreaterEqual(server["committed_pass"], 1)
            self.assertGreater(server["tables"][0]["rows"], 0)

    def test_worker_with_another_schema(self):
        with Servers(2, self.folder) as servers:
            self.run_ok("cistern", "train", self.config, "--out", self.folder / "first",
                        "--servers", servers.addresses)
            before = self.digests(servers)
            result = self.train(servers.addresses, "--set",
                                "layers.deep.sparse_embedding_hparam.embedding_vec_size=8", "--set",
                                "layers.reshape1.leading_dim=32", name="second")
            self.expect(result, 1, "deep")
            self.assertEqual(self.digests(servers), before)

    def digests(self, servers):
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--digest",
                             "--json")
        return status.json()["tables"]

    def test_another_cluster(self):
        with Servers(1, self.folder) as servers:
            self.expect(self.train(servers.addresses, "--cluster", "other"), 1, "cluster")

    def test_malformed_addresses(self):
        self.expect(self.train("nonsense"), 2, "nonsense")
        self.expect(self.train("127.0.0.1:99999"), 2, "99999")

    def test_port_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = run("cistern-server", "--rank=0", "--server_num=1", f"--port={port}")
        self.assertNotEqual(result.code, 0, str(result))
        self.assertIn(str(port), result.err, str(result))

    def test_server_flag_without_a_value(self):
        """As from an unset shell variable: the next flag must not become the value."""
        self.expect(run("cistern-server", "--data_dir=", "--port=0", cwd=self.folder), 2,
                    "--data_dir= has no value")
        self.assertFalse((self.folder / "--port=0").exists())

    def test_unwritable_standard_output_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([BIN / "cistern", "version"], stdout=full, check=False,
                                    stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("standard output: No space left", result.stderr)

    def test_several_workers_need_peers(self):
        with Servers(1, self.folder) as servers:
            result = run("cistern-worker", self.config, "--servers", servers.addresses, "--out",
                         self.folder / "run", "--rank", 1, "--world-size", 2)
            self.expect(result, 2, "where worker 0 is", "--peers HOST:PORT")


if __name__ == "__main__":
    unittest.main(verbosity=2)
