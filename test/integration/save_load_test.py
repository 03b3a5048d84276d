"""cistern save and cistern load with any numbers of servers, each of which handles its own part."""

import os
import resource
import signal
import subprocess
import unittest

from programs import ProgramTest, Servers, finish, run, start, wait_for


class SaveAndLoad(ProgramTest):

    def train(self, servers, name="run", flags=()):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / name, "--continue",
                    "--servers", servers.addresses, *flags)
        return self.folder / name

    def predict(self, name, servers, flags=()):
        output = self.folder / f"{name}.tsv"
        self.run_ok("cistern", "predict", self.config, "--data", self.test_file, "--output",
                    output, "--servers", servers.addresses, *flags)
        return output.read_bytes()

    def status(self, servers, *flags):
        return self.run_ok("cistern", "status", "--servers", servers.addresses, "--json",
                           *flags).json()

    def test_save_and_load_with_another_number_of_servers(self):
        with Servers(2, self.folder) as servers:
            trained = self.train(servers)
            expected = self.predict("before", servers)
            self.run_ok("cistern", "save", "--servers", servers.addresses, "--name", "two")
        for count in (1, 3):
            with self.subTest(servers=count), Servers(count, self.folder) as servers:
                self.run_ok("cistern", "load", "--servers", servers.addresses, "--name", "two")
                self.assertEqual(self.predict(f"loaded-{count}", servers), expected)
        with Servers(3, self.folder) as servers:
            self.run_ok("cistern", "load", "--servers", servers.addresses, "--model",
                        trained, "--config", self.config)
            self.assertEqual(self.predict("from-here", servers), expected)

    def test_deferred_updates_are_applied_before_saving(self):
        flags = ("--set", "optimizer.update_type=Global")
        with Servers(2, self.folder) as servers:
            trained = self.train(servers, flags=flags)
            expected = self.predict("before", servers, flags)
            self.run_ok("cistern", "save", "--servers", servers.addresses, "--name", "global")
        with Servers(3, self.folder) as servers:
            self.run_ok("cistern", "load", "--servers", servers.addresses, "--name", "global")
            self.assertEqual(self.predict("loaded", servers, flags), expected)
        with Servers(1, self.folder) as servers:
            self.run_ok("cistern", "load", "--servers", servers.addresses, "--model", trained,
                        "--config", self.config, *flags)
            self.assertEqual(self.predict("from-here", servers, flags), expected)

    def test_load_keeps_existing_rows_without_replace(self):
        with Servers(1, self.folder) as servers:
            flags = ("--servers", servers.addresses)
            self.train(servers)
            self.run_ok("cistern", "save", *flags, "--name", "a")
            self.expect(run("cistern", "save", *flags, "--to", "a"), 2, "fix: ")
            for name in ("..", "../a", "/a", "a/b", "a b", "ü", "state", "a" * 200):
                self.expect(run("cistern", "save", *flags, "--name", name), 2)
            refusal = self.expect(run("cistern", "save", *flags, "--name", "a\nb"), 2,
                                  "'a\\nb' cannot be a name")
            self.assertEqual(len(refusal.err.splitlines()), 1, refusal.err)
            before = self.status(servers, "--digest")["tables"]
            self.expect(run("cistern", "load", *flags, "--name", "a"), 2, "--replace")
            self.assertEqual(self.status(servers, "--digest")["tables"], before)
            self.run_ok("cistern", "load", *flags, "--from", "a", "--replace")
            self.assertEqual(self.status(servers, "--digest")["tables"], before)
            # The servers remove nothing before they know that the model can be loaded.
            for wrong in (("--name", "b"), ("--name", "a", "--foreign"),
                          ("--model", self.folder / "no", "--config", self.config)):
                self.expect(run("cistern", "load", *flags, *wrong, "--replace"), 2)
            self.expect(run("cistern", "load", *flags, "--name", "a", "--replace", "--tables",
                            "depe"), 1, "no table 'depe'")
            part = next((self.folder / "saved" / "a").glob("part-*.json"))
            part.write_bytes(part.read_bytes()[:-9])
            self.expect(run("cistern", "load", *flags, "--name", "a", "--replace"), 5, part.name)
            self.assertEqual(self.status(servers, "--digest")["tables"], before)

    def test_refused_load_does_not_stop_a_training_run(self):
        with Servers(1, self.folder, durability="commit") as servers:
            flags = ("--servers", servers.addresses)
            self.train(servers)
            self.run_ok("cistern", "save", *flags, "--name", "a")
            worker = start("cistern", "train", self.config, "--out", self.folder / "on", "--continue", *flags,
                           "--set", "solver.num_epochs=100000", "--set",
                           "cistern.pass_memory_mb=1")
            self.addCleanup(worker.kill)

            def passes():
                return self.status(servers)["servers"][0]["committed_pass"]
            before = wait_for(lambda: passes() > 3 and passes(), "passes")
            self.expect(run("cistern", "load", *flags, "--name", "a"), 2, "--replace")
            self.expect(run("cistern", "load", *flags, "--name", "a", "--expect-pass", 1,
                            "--replace"), 1, "is at pass")
            wait_for(lambda: passes() > before + 20, "more passes")
            worker.send_signal(signal.SIGINT)
            self.expect(finish(worker), 130)

    def test_corrupt_save_is_not_loaded(self):
        with Servers(2, self.folder) as servers:
            self.train(servers)
            self.run_ok("cistern", "save", "--servers", servers.addresses, "--name", "a")
        part = max((self.folder / "saved" / "a" / "deep").iterdir(), key=lambda p: p.stat().st_size)
        part.write_bytes(part.read_bytes()[:-3])
        with Servers(3, self.folder) as servers:
            result = run("cistern", "load", "--servers", servers.addresses, "--name", "a")
            self.expect(result, 5, part.name)
            rows = [table["rows"] for table in self.status(servers)["tables"]
                    if table["name"] == "deep"]
            self.assertIn(rows, ([], [0]))

    def test_full_disk_on_save(self):
        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

        # The log is not a file here: a file would also hit the limit.
        with Servers(1, self.folder, preexec_fn=limit_files, restore_signals=False) as servers:
            self.train(servers)
            before = self.status(servers, "--digest")["tables"]
            result = run("cistern", "save", "--servers", servers.addresses, "--name", "full")
            self.expect(result, 1, "full", "part-")
            self.assertFalse(list((self.folder / "saved" / "full").glob("part-*.json")))
            self.assertEqual(self.status(servers, "--digest")["tables"], before)
            self.predict("after", servers)

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_save_on_a_device_without_space(self):
        saved = self.folder / "saved"
        saved.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", saved],
                          check=False, capture_output=True).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", saved], check=True)
        with Servers(2, self.folder) as servers:
            self.train(servers)
            before = self.status(servers, "--digest")["tables"]
            result = run("cistern", "save", "--servers", servers.addresses, "--name", "full")
            self.expect(result, 1, "No space left on device", "fix: ")
            self.assertFalse(list((saved / "full").glob("part-*.json")))
            self.assertEqual(self.status(servers, "--digest")["tables"], before)

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_commits_on_a_device_without_space(self):
        """The run ends, its commits stay good, and it resumes once there is space."""
        saved = self.folder / "saved"
        saved.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", saved],
                          check=False, capture_output=True).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", saved], check=True)
        with Servers(1, self.folder, durability="commit") as servers:
            words = ("cistern", "train", self.config, "--out", self.folder / "run",
                     "--no-save-model", "--servers", servers.addresses)
            self.expect(run(*words, "--set", "solver.num_epochs=1000"), 1,
                        "No space left on device", "free space there")
            done = self.status(servers)["servers"][0]["commit"]
            self.assertGreater(done, 2)
            self.run_ok("cistern", "verify", saved, "--all")
            self.expect(run("cistern", "shrink", "--servers", servers.addresses), 1)
            subprocess.run(["mount", "-o", "remount,size=8m", saved], check=True)
            self.run_ok(*words, "--resume", "--set", f"solver.num_epochs={done + 5}")
            self.run_ok("cistern", "verify", saved, "--all")


if __name__ == "__main__":
    unittest.main(verbosity=2)
