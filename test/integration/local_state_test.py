"""Fleets without a shared folder: each server has a data_dir of its own, and copies are pushed and pulled.

CISTERN_KILLS: number of kills. CISTERN_SEED: seed of their random times.
"""

import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from programs import BIN, LIMIT_SECONDS, ProgramTest, Server, finish, run, start, wait_for

KILLS = int(os.environ.get("CISTERN_KILLS", "8"))
SEED = int(os.environ.get("CISTERN_SEED", "1"))


class Fleet:
    """Servers, each with a folder of its own, and a program beside each that pushes it to one copy."""

    def __init__(self, test, name, count=3, flags=(), copies=False):
        self.test, self.folder, self.count = test, test.folder / name, count
        self.folder.mkdir()
        self.flags = ["--local_state", *(["--commit_waits_for=copy"] if copies else []), *flags]
        self.copy = self.folder / "copy"
        self.servers = [None] * count
        self.pushes = [None] * count
        for rank in range(count):
            self.start(rank)
            if copies:
                self.start_push(rank)
        test.addCleanup(self.stop)

    def data_dir(self, rank):
        return self.folder / f"data-{rank}"

    def start(self, rank, port=0):
        limit = ["--memory_limit_mb=0.05"] if rank % 2 == 1 else []  # its rows are in files
        self.servers[rank] = Server(rank, self.count, self.folder, port=port, durability="commit",
                                    data_dir=self.data_dir(rank), flags=[*self.flags, *limit])

    def restart(self, rank):
        port = self.servers[rank].port
        self.servers[rank].kill()
        self.servers[rank].stop()
        self.start(rank, port)

    def start_push(self, rank):
        wait_for(lambda: (self.data_dir(rank) / "state" / "manifest").exists(), "a state folder")
        self.pushes[rank] = start("cistern", "ckpt", "push", self.data_dir(rank), "--to", self.copy,
                                  "--follow")

    def stop_push(self, rank):
        self.pushes[rank].send_signal(signal.SIGTERM)
        self.test.expect(finish(self.pushes[rank]), 0)
        self.pushes[rank] = None

    def push_all(self):
        for rank in range(self.count):
            last = self.test.run_ok("cistern", "ckpt", "push", self.data_dir(rank), "--to", self.copy,
                                    "--json").json()
        return last

    @property
    def addresses(self):
        return ",".join(server.address for server in self.servers)

    def stop(self):
        for rank in range(self.count):
            if self.pushes[rank] is not None:
                self.pushes[rank].kill()
                self.pushes[rank].communicate()
                self.pushes[rank] = None
            if self.servers[rank] is not None:
                self.servers[rank].stop()
                self.servers[rank] = None

    def status(self):
        status = self.test.run_ok("cistern", "status", "--servers", self.addresses, "--digest", "--json").json()
        self.test.assertTrue(all(server["state"] == "ready" for server in status["servers"]), status)
        return status

    def digests(self):
        return {table["name"]: (table["rows"], table["digest"]) for table in self.status()["tables"]}


class LocalState(ProgramTest):

    SAMPLES = 1000
    EPOCHS = 12

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.write_model(self.change)

    def change(self, content):
        content["solver"].update(num_epochs=self.EPOCHS, eval_interval=0, display=0)
        content["cistern"] = {"shuffle": True}

    def words(self, fleet, *flags):
        return ("cistern-worker", self.config, "--out", fleet.folder / "run", "--servers", fleet.addresses,
                "--take-over", *flags)

    def undisturbed(self):
        """The digests after the whole training."""
        fleet = Fleet(self, "undisturbed", 1)
        self.run_ok(*self.words(fleet))
        digests = fleet.digests()
        fleet.stop()
        return digests

    def commit(self, fleet):
        return max((int(path.name) for path in (fleet.data_dir(0) / "state" / "manifest").glob("[0-9]" * 20)),
                   default=0)

    def finish_training(self, fleet):
        self.run_ok(*self.words(fleet, "--resume"))
        self.assertEqual(fleet.digests(), self.undisturbed())

    def train_until(self, fleet, commit):
        """Trains and kills the worker after a commit."""
        worker = start(*self.words(fleet, "--resume"))
        wait_for(lambda: self.commit(fleet) >= commit or worker.poll() is not None, "commits")
        worker.kill()
        worker.communicate()
        for rank in range(fleet.count):  # no pass is open any more
            fleet.restart(rank)
        # Whoever connects brings servers that missed the last call of a commit up to it.
        self.run_ok("cistern", "table", "hist", "deep", "--servers", fleet.addresses)
        return self.commit(fleet)

    def lose_disk(self, fleet, rank):
        fleet.servers[rank].kill()
        shutil.rmtree(fleet.data_dir(rank))

    def pull(self, fleet, rank, *flags, code=0, messages=()):
        result = run("cistern", "ckpt", "pull", fleet.copy, "--to", fleet.data_dir(rank), "--server", rank, *flags)
        self.expect(result, code, *messages)

    def come_back(self, fleet, rank):
        port = fleet.servers[rank].port
        fleet.servers[rank].stop()
        fleet.start(rank, port)

    def test_kills_of_worker_servers_and_copies(self):
        fleet = Fleet(self, "fleet", copies=True)
        commit = 0
        for _ in range(KILLS):
            worker = start(*self.words(fleet, "--resume"))
            commit += 1
            wait_for(lambda: self.commit(fleet) >= commit or worker.poll() is not None, "a commit")
            time.sleep(self.random.random() / 20)
            victims = [who for who in ("worker", 0, 1, 2, "push") if self.random.random() < 0.5]
            if "worker" in victims:
                worker.kill()
            if "push" in victims:
                rank = self.random.randrange(3)
                fleet.pushes[rank].kill()
                fleet.pushes[rank].communicate()
                fleet.start_push(rank)
            for rank in (0, 1, 2):
                if rank in victims:
                    fleet.restart(rank)
            worker.kill()
            worker.communicate()
            commit = self.commit(fleet)
            # The copy is whole at any time.
            if (fleet.copy / "state" / "manifest").exists():
                self.run_ok("cistern", "verify", fleet.copy)
        self.finish_training(fleet)
        for rank in range(3):
            self.assertEqual(fleet.status()["servers"][rank]["local_state"], True)
        wait_for(lambda: {one["copied_commit"] for one in fleet.status()["servers"]} == {self.EPOCHS},
                 "the last commit in the copy")
        self.run_ok("cistern", "verify", fleet.copy, "--all")
        self.run_ok("cistern", "ckpt", "ls", fleet.copy)

    def test_a_lost_disk_is_restored_without_a_loss(self):
        """Commits wait for the copy, so the copy has every file of a commit, if not its manifest."""
        fleet = Fleet(self, "fleet", copies=True)
        for rank, commit in ((1, 3), (0, 5), (2, 7)):
            reached = self.train_until(fleet, commit)
            self.assertGreaterEqual(reached, commit)
            before = fleet.digests()
            fleet.pushes[rank].kill()
            fleet.pushes[rank].communicate()
            self.lose_disk(fleet, rank)
            self.come_back(fleet, rank)
            refused = run(*self.words(fleet, "--resume", "--connect-timeout", "2"))
            self.assertNotEqual(refused.code, 0)
            self.assertIn("cistern ckpt pull", refused.err)
            fleet.servers[rank].kill()
            other = fleet.data_dir((rank + 1) % 3)
            self.pull(fleet, rank, "--manifest", other)
            self.come_back(fleet, rank)
            fleet.start_push(rank)
            self.assertEqual(fleet.digests(), before)
        self.finish_training(fleet)

    def test_all_servers_go_back_to_an_older_copy(self):
        fleet = Fleet(self, "fleet")
        self.train_until(fleet, 3)
        pushed = fleet.push_all()
        self.assertEqual(pushed["whole_commit"], pushed["commit"])
        copied = pushed["commit"]
        at_copy = fleet.digests()
        reached = self.train_until(fleet, copied + 2)
        self.lose_disk(fleet, 1)
        self.pull(fleet, 1)
        self.come_back(fleet, 1)
        refused = run(*self.words(fleet, "--resume", "--connect-timeout", "2"))
        self.assertNotEqual(refused.code, 0)
        self.assertIn(f"of commit {reached}", refused.err)
        for rank in (0, 2):
            fleet.servers[rank].kill()
            self.pull(fleet, rank, code=2, messages=[f"holds commits up to {reached}", "--replace"])
            self.pull(fleet, rank, "--replace")
            self.assertTrue((fleet.data_dir(rank) / "state.replaced-1" / "manifest").exists())
            self.come_back(fleet, rank)
        self.assertEqual(fleet.digests(), at_copy)
        self.finish_training(fleet)

    def test_server_0_adopts_the_manifest_of_another(self):
        fleet = Fleet(self, "fleet")
        commit = self.train_until(fleet, 3)
        before = fleet.digests()
        name = f"{commit:020}"
        fleet.servers[0].kill()
        state = fleet.data_dir(0) / "state"
        (state / "manifest" / name).unlink()
        for later in (*(state / "epoch").iterdir(), *(state / "data").glob(f"delta-{commit + 1}-*")):
            later.unlink()  # they would prove that a manifest is missing
        self.come_back(fleet, 0)
        refused = run(*self.words(fleet, "--resume", "--connect-timeout", "2"))
        self.assertNotEqual(refused.code, 0)
        self.assertIn("cistern ckpt adopt-manifest", refused.err)
        words = ("cistern", "ckpt", "adopt-manifest", fleet.data_dir(1), "--to", fleet.data_dir(0))
        self.expect(run(*words), 1, "in use")
        fleet.servers[0].kill()
        row_file = next((state / "data").glob("*"))
        row_file.rename(self.folder / "aside")
        self.expect(run(*words), 5, row_file.name, "cistern ckpt pull")
        (self.folder / "aside").rename(row_file)
        self.run_ok(*words)
        self.run_ok(*words)
        self.come_back(fleet, 0)
        self.assertEqual(fleet.digests(), before)
        self.finish_training(fleet)

    def test_another_number_of_servers_and_other_tools(self):
        fleet = Fleet(self, "fleet")
        self.train_until(fleet, 4)
        fleet.push_all()
        fleet.push_all()  # the order in which servers are pushed does not matter
        before = fleet.digests()
        fleet.stop()
        copy = fleet.copy
        listed = self.run_ok("cistern", "ckpt", "ls", copy, "--json").json()["commits"][-1]
        self.assertTrue(listed["whole"])
        self.run_ok("cistern", "verify", copy)
        # Of a server's own folder, its files are checked.
        self.assertEqual(self.run_ok("cistern", "verify", fleet.data_dir(1), "--json").json()["commits"][-1]["server"], 1)
        own = self.run_ok("cistern", "ckpt", "ls", fleet.data_dir(1), "--json").json()["commits"][-1]
        self.assertEqual((own["whole"], own["server"]), (False, 1))
        self.expect(run("cistern", "ckpt", "diff", fleet.data_dir(1), copy), 1, "the files of server 1 alone",
                    "cistern ckpt push")
        for rank, flags in ((2, fleet.flags), (1, [])):  # another rank, and a folder that is shared
            with self.assertRaisesRegex(AssertionError, "is the state of server 1"):
                Server(rank, 3, self.folder, durability="commit", data_dir=fleet.data_dir(1), flags=flags)
        # As it is, by servers that share it.
        shared = Server(0, 1, self.folder, durability="commit", data_dir=copy)
        status = self.run_ok("cistern", "status", "--servers", shared.address, "--digest", "--json").json()
        self.assertEqual({table["name"]: (table["rows"], table["digest"]) for table in status["tables"]}, before)
        self.expect(run("cistern", "ckpt", "push", fleet.data_dir(0), "--to", copy), 0)
        shared.stop()
        grown = Fleet.__new__(Fleet)
        grown.test, grown.folder, grown.count = self, self.folder / "grown", 4
        grown.flags, grown.copy = ["--local_state"], copy
        grown.servers, grown.pushes = [None] * 4, [None] * 4
        for rank in range(4):
            self.pull(grown, rank, "--server-num", 4)
        grown.folder.mkdir(exist_ok=True)
        for rank in range(4):
            grown.start(rank)
        self.addCleanup(grown.stop)
        self.assertEqual(grown.digests(), before)
        self.finish_training(grown)

    def test_refusals(self):
        fleet = Fleet(self, "fleet")
        self.expect(run("cistern", "ckpt", "push", fleet.data_dir(0), "--to", fleet.copy), 2, "no commit yet")
        self.expect(run("cistern", "ckpt", "push", self.folder / "nothing", "--to", fleet.copy), 2,
                    "not a cluster's state folder")
        self.expect(run("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x"), 2, "has no commit")
        self.train_until(fleet, 2)
        fleet.push_all()
        commit = self.commit(fleet)
        self.expect(run("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x", "--server", "3"), 2,
                    "ranks are 0 to 2")
        self.expect(run("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x", "--server", "one"), 2,
                    "no rank")
        self.expect(run("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x", "--commit", "99"), 2,
                    "has no commit 99", f"{commit}")
        self.pull(fleet, 1, "--replace", code=1, messages=["in use"])
        # A corrupt file is neither pushed nor pulled.
        row_file = max((fleet.copy / "state" / "data").glob("*-1"), key=lambda path: path.stat().st_size)
        content = bytearray(row_file.read_bytes())
        content[len(content) // 2] ^= 1
        row_file.write_bytes(content)
        self.expect(run("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x", "--server", "1"), 5,
                    row_file.name)
        self.assertFalse((self.folder / "x" / "state").exists())
        row_file.unlink()
        self.expect(run("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x", "--server", "1"), 5,
                    row_file.name, "lacks")
        self.run_ok("cistern", "ckpt", "push", fleet.data_dir(1), "--to", fleet.copy)
        self.run_ok("cistern", "ckpt", "pull", fleet.copy, "--to", self.folder / "x", "--server", "1")
        own = fleet.data_dir(2) / "state" / "data"
        row_file = next(own.glob("base-*"))
        content = bytearray(row_file.read_bytes())
        content[len(content) // 2] ^= 1
        row_file.write_bytes(content)
        self.expect(run("cistern", "ckpt", "push", fleet.data_dir(2), "--to", self.folder / "second"), 5,
                    row_file.name)
        # The copy of another training, and an older state.
        other = Fleet(self, "other", 1, flags=["--cluster=other"])
        self.run_ok(*self.words(other, "--cluster", "other"))
        self.expect(run("cistern", "ckpt", "push", other.data_dir(0), "--to", fleet.copy), 1, "another training")
        # A server whose commits wait for a copy that nobody makes.
        waiting = Fleet(self, "waiting", 1, flags=["--commit_waits_for=copy"])
        with open(self.folder / "worker.log", "w", encoding="utf-8") as log:
            worker = subprocess.Popen([str(word) for word in (BIN / "cistern-worker", *self.words(
                waiting, "--connect-timeout", "1")[1:])], stdout=subprocess.DEVNULL, stderr=log)
            wait_for(lambda: "cistern ckpt push" in (self.folder / "worker.log").read_text(), "the reason")
            self.assertEqual(self.commit(waiting), 0)
            waiting.start_push(0)
            self.assertEqual(worker.wait(LIMIT_SECONDS), 0)
        self.assertEqual(waiting.digests(), self.undisturbed())


if __name__ == "__main__":
    unittest.main()
