"""Lists, verifies, compares, rewrites and recovers commits of real servers on disk.

CISTERN_KILLS: number of kills of a reshard. CISTERN_SEED: seed of their random times.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import time
import unittest

from programs import ProgramTest, Servers, finish, run, start, wait_for


KILLS = int(os.environ.get("CISTERN_KILLS", "12"))
SEED = int(os.environ.get("CISTERN_SEED", "1"))


class Checkpoints(ProgramTest):

    SAMPLES = 1000

    def setUp(self):
        super().setUp()
        self.data_dir = self.folder / "saved"

    def train(self, servers, name, *flags):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / name, "--continue",
                    "--servers", servers.addresses, *flags)

    def digests(self, servers):
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--json",
                             "--digest").json()
        self.assertTrue(all(server["durable"] for server in status["servers"]))
        return {table["name"]: table["digest"] for table in status["tables"]}

    def list(self, place):
        return self.run_ok("cistern", "ckpt", "ls", place, "--json").json()

    def commit_digests(self, place):
        return {table["name"]: table["digest"] for table in self.list(place)["commits"][-1]["tables"]}

    def trained(self):
        """Trains on two durable servers, stops them, and returns their digests."""
        with Servers(2, self.folder, durability="commit") as servers:
            self.train(servers, "run")
            flags = ("--servers", servers.addresses)
            self.run_ok("cistern", "scrub", *flags, "--files")
            hist = self.run_ok("cistern", "table", "hist", "deep", *flags, "--json").json()
            self.assertEqual(sum(bucket["count"] for bucket in hist["buckets"]), hist["rows"])
            self.run_ok("cistern", "save", *flags, "--name", "model")
            return self.digests(servers)

    def recovered(self, count, shard_num=64, data_dir=None):
        with Servers(count, self.folder, durability="commit", data_dir=data_dir,
                     flags=[f"--shard_num={shard_num}"]) as servers:
            return self.digests(servers)

    def test_commits_are_listed_and_recovered_on_other_servers(self):
        digests = self.trained()
        listed = self.list(self.data_dir)
        self.assertTrue(all(commit["whole"] for commit in listed["commits"]))
        self.assertEqual([model["name"] for model in listed["models"]], ["model"])
        self.assertEqual(self.commit_digests(self.data_dir), digests)
        self.run_ok("cistern", "verify", self.data_dir, "--all")
        self.run_ok("cistern", "verify", self.data_dir / "model")
        self.run_ok("cistern", "ckpt", "diff", self.data_dir, self.data_dir / "model")
        self.assertEqual(self.recovered(3), digests)

    def test_increments_follow_a_saved_model(self):
        first, second, joined = (self.folder / name for name in ("changes-1", "changes-2", "joined"))
        base = self.data_dir / "monday"
        with Servers(2, self.folder, durability="commit") as servers:
            flags = ("--servers", servers.addresses)
            self.train(servers, "run-1")
            self.run_ok("cistern", "save", *flags, "--name", "monday")
            self.train(servers, "run-2")
            saved = self.run_ok("cistern", "save", *flags, "--since", base, "--to", first, "--json").json()
            self.assertGreater(saved["rows"], 0)
            self.assertEqual(saved["removed"], 0)
            self.train(servers, "run-3")
            self.run_ok("cistern", "ckpt", "changes", self.data_dir, "--since", first, "--out", second,
                        "--format", "binary", "--gzip")
            self.expect(run("cistern", "save", *flags, "--since", base, "--to", first), 2, "already exists")
            self.expect(run("cistern", "save", *flags, "--since", "9999", "--to", self.folder / "no"), 2,
                        "9999", "fix: ")
            self.expect(run("cistern", "save", *flags, "--since", base, "--name", "no"), 2, "--to")
            digests = self.digests(servers)
        increments = f"{first},{second}"
        self.run_ok("cistern", "ckpt", "apply", base, "--increments", increments, "--out", joined)
        self.run_ok("cistern", "verify", joined)
        self.run_ok("cistern", "ckpt", "diff", self.data_dir, joined)
        self.expect(run("cistern", "ckpt", "apply", base, "--increments", second, "--out", self.folder / "no"),
                    1, "changes the rows of commit", "without a gap")
        self.expect(run("cistern", "ckpt", "apply", base, "--increments", f"{second},{first}", "--out",
                        self.folder / "no"), 2, "does not continue", "the oldest first")
        elsewhere = self.folder / "elsewhere"
        shutil.copytree(base, elsewhere / "monday")
        with Servers(3, self.folder, durability="commit", data_dir=elsewhere) as servers:
            flags = ("--servers", servers.addresses)
            self.run_ok("cistern", "load", *flags, "--name", "monday")
            self.expect(run("cistern", "load", *flags, "--increments", second), 1, "the fleet holds others")
            for _ in range(2):  # the second time there is nothing to do
                self.run_ok("cistern", "load", *flags, "--increments", increments)
                self.assertEqual(self.digests(servers), digests)

    def test_increments_of_a_shrunk_and_bounded_table_are_loaded(self):
        changes, joined, base = self.folder / "changes", self.folder / "joined", self.data_dir / "monday"
        tables = tuple(f"--set=cistern.embeddings.deep.{rule}"
                       for rule in ("accessor=ctr", "delete_threshold=20", "expire_days=30"))
        with Servers(2, self.folder, durability="commit") as servers:
            flags = ("--servers", servers.addresses)
            self.train(servers, "run-1", *tables)
            self.run_ok("cistern", "save", *flags, "--name", "monday")
            self.run_ok("cistern", "shrink", *flags)
            saved = self.run_ok("cistern", "save", *flags, "--since", base, "--to", changes, "--json").json()
            self.assertGreater(saved["removed"], 0)
            self.assertGreater(saved["to"]["tables"][0]["rows"], 0)
            digests = self.digests(servers)
        self.run_ok("cistern", "ckpt", "apply", base, "--increments", changes, "--out", joined)
        elsewhere = self.folder / "elsewhere"
        shutil.copytree(base, elsewhere / "monday")
        with Servers(3, self.folder, durability="commit", data_dir=elsewhere) as servers:
            flags = ("--servers", servers.addresses)
            self.run_ok("cistern", "load", *flags, "--name", "monday")
            self.run_ok("cistern", "load", *flags, "--increments", changes)
            self.assertEqual(self.digests(servers), digests)
        self.run_ok("cistern", "ckpt", "diff", elsewhere, joined)
        with Servers(1, self.folder, durability="commit", data_dir=elsewhere) as servers:
            self.assertEqual(self.digests(servers), digests)
            self.train(servers, "run-2", *tables)

    def test_flipped_byte_is_named(self):
        self.trained()
        files = list((self.data_dir / "state" / "data").iterdir())
        bad = max(files, key=lambda path: path.stat().st_size)
        content = bytearray(bad.read_bytes())
        content[len(content) // 2] ^= 4
        bad.write_bytes(content)
        self.expect(run("cistern", "verify", self.data_dir), 5, bad.name, "fix: ")
        result = run("cistern", "verify", self.data_dir, "--json")
        self.assertEqual(result.json()["exit_code"], 5)
        self.assertIn(bad.name, result.json()["faults"][0])
        self.expect(run("cistern", "ckpt", "reshard", self.data_dir, "--out", self.folder / "new"),
                    5, bad.name)
        bad.unlink()
        self.expect(run("cistern", "ckpt", "ls", self.data_dir), 5, bad.name)
        self.expect(run("cistern", "verify", self.data_dir), 5, bad.name)

    def test_resharded_state_starts(self):
        digests = self.trained()
        for count, shards in ((3, 64), (2, 48)):
            with self.subTest(servers=count, shards=shards):
                out = self.folder / f"new-{count}-{shards}"
                self.run_ok("cistern", "ckpt", "reshard", self.data_dir, "--out", out,
                            "--server-num", count, "--shard-num", shards)
                self.run_ok("cistern", "verify", out)
                self.run_ok("cistern", "ckpt", "diff", self.data_dir, out)
                self.assertEqual(self.recovered(count, shards, out), digests)
        self.assertEqual(self.recovered(2), digests)

    def test_exhausted_epochs_are_repaired(self):
        digests = self.trained()
        whole = self.folder / "whole"
        shutil.copytree(self.data_dir, whole)
        with Servers(2, self.folder, durability="commit", data_dir=whole) as servers:
            self.train(servers, "whole-run")
            expected = self.digests(servers)
        self.assertNotEqual(expected, digests)
        epochs = self.data_dir / "state" / "epoch"
        (epochs / str(2**64 - 1)).touch()
        with Servers(2, self.folder, durability="commit") as servers:
            log = pathlib.Path(servers.all[0].log.name).read_text(encoding="utf-8")
            self.assertIn("cistern ckpt repair-epochs", log)
            self.expect(run("cistern", "train", self.config, "--out", self.folder / "refused",
                            "--continue", "--servers", servers.addresses),
                        1, f"cistern ckpt repair-epochs {self.data_dir}/state")
            self.expect(run("cistern", "ckpt", "repair-epochs", self.data_dir), 1,
                        "another process is server 0", "fix: stop every server")
        repaired = self.run_ok("cistern", "ckpt", "repair-epochs", self.data_dir, "--json").json()
        self.assertEqual(repaired["removed"], [2**64 - 1])
        self.assertLess(repaired["epoch"], 100)
        self.assertEqual(max(int(claim.name) for claim in epochs.iterdir()), repaired["epoch"])
        with Servers(2, self.folder, durability="commit") as servers:
            self.assertEqual(self.digests(servers), digests)
            self.train(servers, "run-on")
            self.assertEqual(self.digests(servers), expected)

    def test_missing_or_broken_manifest_chain_is_reported(self):
        self.trained()
        with Servers(2, self.folder, durability="commit") as servers:
            self.run_ok("cistern", "shrink", "--servers", servers.addresses)
        manifests = sorted((self.data_dir / "state" / "manifest").iterdir())
        start_server = ("cistern-server", "--rank=0", "--server_num=2", "--port=0",
                        f"--data_dir={self.data_dir}")
        stray = manifests[-1].with_name(str(2**64 - 1))
        stray.touch()
        self.expect(run(*start_server), 5, str(stray), "move it away")
        stray.unlink()
        # The shrink claimed its term after the second-last manifest.
        for manifest in manifests[-2:]:
            manifest.unlink()
        self.expect(run(*start_server), 5, f"manifest {int(manifests[-2].name)} is missing")

    def test_killed_reshard_leaves_nothing_and_can_be_repeated(self):
        digests = self.trained()
        out = self.folder / "new"
        command = ("cistern", "ckpt", "reshard", self.data_dir, "--out", out, "--shard-num", 48)
        commits = self.list(self.data_dir)["commits"]
        moments = random.Random(SEED)
        began = whole = 0
        for _ in range(KILLS):
            process = start(*command)
            time.sleep(moments.uniform(0, 0.06))  # at a random point of its work
            process.kill()
            finish(process)
            began += out.exists()
            if (out / "state" / "manifest").exists() and self.list(out)["commits"]:
                self.run_ok("cistern", "verify", out)
                self.assertEqual(self.commit_digests(out), digests)
                shutil.rmtree(out)
                whole += 1
            self.assertEqual(self.list(self.data_dir)["commits"], commits)
        print(f"{KILLS} kills of a reshard (seed {SEED}): {began} had begun to write, {whole} of "
              "them were whole, the others left no commit", flush=True)
        self.run_ok(*command)
        self.assertEqual(self.commit_digests(out), digests)
        self.run_ok("cistern", "verify", out)

    def test_repeated_load_does_nothing(self):
        digests = self.trained()
        config = ("--config", self.config)
        with Servers(3, self.folder, durability="commit") as servers:
            flags = ("--servers", servers.addresses)
            for load in (("--name", "model"), ("--model", self.folder / "run", *config)):
                result = self.run_ok("cistern", "load", *flags, *load, "--json").json()
                self.assertTrue(result["already_there"])
            self.assertEqual(self.digests(servers), digests)
            moved = ("--name", "model", "--replace", "--expect-pass", 0)
            self.expect(run("cistern", "load", *flags, *moved), 1, "nothing was changed")
            self.assertEqual(self.digests(servers), digests)
            pass_ = self.list(self.data_dir)["commits"][-1]["pass"]
            self.run_ok("cistern", "load", *flags, *moved[:-1], pass_)
            self.assertEqual(self.digests(servers), digests)
        with Servers(1, self.folder) as servers:
            flags = ("--servers", servers.addresses)
            self.run_ok("cistern", "load", *flags, "--name", "model")
            # Without commits nothing proves that this NAME folder is the servers' own; --model needs no proof.
            self.expect(run("cistern", "load", *flags, "--name", "model"), 2, "--replace")
            again = self.run_ok("cistern", "load", *flags, "--model", self.folder / "run", *config)
            self.assertIn("nothing to do", again.out)

    def test_every_tool_works_during_training(self):
        with Servers(2, self.folder, durability="commit") as servers:
            flags = ("--servers", servers.addresses)
            worker = start("cistern", "train", self.config, "--out", self.folder / "on", "--continue",
                           "--no-save-model", *flags, "--set", "solver.num_epochs=100000",
                           "--set", "cistern.pass_memory_mb=1")
            self.addCleanup(worker.kill)

            def commits():
                return self.run_ok("cistern", "status", *flags, "--json").json(
                    )["servers"][0]["commit"]
            before = wait_for(lambda: commits() > 3 and commits(), "commits")
            for words in (["status", "--digest"], ["table", "ls"], ["table", "show", "deep", 7],
                          ["table", "hist", "deep"], ["scrub", "--files"], ["shrink", "--dry-run"],
                          ["save", "--name", "text"], ["save", "--name", "zipped", "--gzip"]):
                self.run_ok("cistern", *words, *flags)
            saved = self.folder / "saved"
            # All servers save the same pass, although they keep committing.
            for number in range(20):
                name = f"again-{number}"
                said = self.run_ok("cistern", "save", "--name", name, *flags, "--json").json()
                parts = list((saved / name).glob("part-*.json"))
                passes = [json.loads(part.read_text())["pass"] for part in parts]
                self.assertEqual(passes, [said["committed_pass"]] * 2)
            for words in (["ckpt", "ls", saved], ["verify", saved], ["verify", saved / "text"],
                          ["ckpt", "reshard", saved, "--out", self.folder / "copy",
                           "--shard-num", 7]):
                self.run_ok("cistern", *words)
            self.expect(run("cistern", "shrink", *flags, "--expect-pass", 1), 1, "is at pass")
            wait_for(lambda: commits() > before + 20, "more commits")
            worker.send_signal(signal.SIGINT)
            self.expect(finish(worker), 130)

    def test_diff_reports_differences(self):
        self.trained()
        newest = self.list(self.data_dir)["commits"][-1]["commit"]
        place = f"{self.data_dir}@{newest}"
        self.run_ok("cistern", "ckpt", "diff", place, self.data_dir)
        before = f"{self.data_dir}@{newest - 1}"
        result = run("cistern", "ckpt", "diff", before, place, "--json", "--rows", 2)
        self.assertEqual(result.code, 1, str(result))
        deep = {table["name"]: table for table in result.json()["tables"]}["deep"]
        self.assertGreater(deep["changed"] + deep["added"], 0)
        self.assertLessEqual(len(deep["changed_keys"]), 2)
        self.expect(run("cistern", "ckpt", "diff", self.folder, place), 2, "fix: ")
        self.expect(run("cistern", "ckpt", "diff", f"{self.data_dir}@{newest + 5}", place), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
