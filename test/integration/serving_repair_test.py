"""Damage in a serving folder is found, not served, and repaired."""

import shutil
import unittest

from programs import run as run_program
from serving_folder import ServingTest
from serving_library import Model, ServeError


class Repair(ServingTest):

    def test_verify_finds_a_flipped_bit_in_any_file(self):
        """Also in HEAD, and in a version that is not served."""
        run = self.train("run", "--durability", "commit")
        self.export("--model", run, "--precision", "int8", "--keep", 3)
        self.export("--state", run, "--keep", 3)
        checked = 0
        for path in sorted(p for p in self.serving.rglob("*") if p.is_file() and p.stat().st_size):
            whole = path.read_bytes()
            for at in sorted({0, len(whole) // 2, len(whole) - 1}):
                damaged = bytearray(whole)
                damaged[at] ^= 1 << checked % 8
                path.write_bytes(damaged)
                result = run_program("cistern", "serving", "verify", self.serving)
                self.assertEqual(result.code, 5, (path, at, result))
                checked += 1
            path.write_bytes(whole)
        self.assertGreater(checked, 20)
        self.run_ok("cistern", "serving", "verify", self.serving)
        shutil.rmtree(self.serving / self.published_name())
        self.expect(run_program("cistern", "serving", "verify", self.serving), 5, "is missing")

    def test_a_damaged_version_is_not_followed(self):
        run = self.train()
        self.export("--model", run)
        with Model(self.serving, "poll_ms=0") as model:
            before = model.predict(self.samples[:5])
            self.export("--model", run, "--precision", "int8")
            folder = self.serving / self.published_name()
            (folder / "dense.bin").write_bytes(b"nonsense")
            with self.assertRaisesRegex(ServeError, "dense.bin"):
                model.follow()
            self.assertEqual(model.predict(self.samples[:5]), before)
        with self.assertRaisesRegex(ServeError, "dense.bin"):
            Model(self.serving)

    def damage(self, name):
        """Flips a bit in a file of the current version."""
        path = self.serving / self.published_name() / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    def test_damaged_changes_are_replaced_by_a_base(self):
        """An older version is served until `publish` has written a whole one."""
        run = self.train("run", "--durability", "commit", "--set", "cistern.pass_memory_mb=1",
                         "--set", "solver.num_epochs=3")
        commits = [commit["commit"] for commit in
                   self.run_ok("cistern", "ckpt", "ls", run, "--json").json()["commits"]]
        publish = ("cistern", "publish", self.config, "--follow", run, "--out", self.serving,
                   "--once", "--base-share", 1)
        self.export("--state", f"{run}@{commits[-2]}")
        self.run_ok(*publish)
        layers = self.run_ok("cistern", "serving", "ls", self.serving, "--json").json()["versions"]
        self.assertEqual([version["layers"] for version in layers], [1, 2])
        expected = self.expected("--model", run)
        self.damage("rows-000.rows")
        with self.assertRaisesRegex(ServeError, "rows-000.rows"):
            Model(self.serving)
        with Model(self.serving, "poll_ms=0 fall_back=1") as model:
            self.assertEqual(model.predict(self.samples[:5])[1], commits[-2])
            self.assertIn("is damaged", self.run_ok(*publish).err)
            self.assertTrue(model.follow())
            self.assertEqual(model.predict(self.samples[:5])[1], commits[-1])
            self.assertEqual(self.online(model, 100), expected)
        versions = self.run_ok("cistern", "serving", "ls", self.serving, "--json").json()
        self.assertEqual(versions["versions"][-1]["layers"], 1)
        self.assertIn("published 0 versions", self.run_ok(*publish).out)

    def test_a_folder_with_a_damaged_description_can_be_repaired(self):
        run = self.train()
        self.export("--model", run)
        first = self.published_name()
        self.export("--model", run, "--precision", "int8")
        second = self.published_name()
        self.damage("serving.json")
        listed = self.run_ok("cistern", "serving", "ls", self.serving, "--json").json()
        self.assertEqual(listed["damaged"], [second])
        (self.serving / "HEAD").write_text("?")
        self.run_ok("cistern", "serving", "rollback", self.serving, "--to", first)
        verified = run_program("cistern", "serving", "verify", self.serving)
        self.assertEqual(verified.code, 5, verified)
        self.assertIn(f"the served version {first} is intact, but another one is damaged", verified.err)
        self.assertIn(second, verified.err)
        self.damage("dense.bin")
        refused = run_program("cistern", "serving", "rollback", self.serving, "--to", first)
        self.assertEqual(refused.code, 5, refused)
        self.assertIn("dense.bin", refused.err)
        self.export("--model", run)
        self.export("--model", run)
        self.assertFalse((self.serving / second).exists())  # it counts as no version

    def test_a_folder_that_has_lost_its_head_can_be_repaired(self):
        run = self.train()
        self.export("--model", run)
        first = self.published_name()
        self.export("--model", run, "--precision", "int8")
        second = self.published_name()
        for damage in (lambda head: head.unlink(), lambda head: head.write_text("?")):
            damage(self.serving / "HEAD")
            listed = self.run_ok("cistern", "serving", "ls", self.serving)
            self.assertIn(f"cistern serving rollback {self.serving} --to", listed.out)
            self.expect(run_program("cistern", "serving", "verify", self.serving), 5, "HEAD")
            # Which version is the one before? The error has the command to type.
            self.expect(run_program("cistern", "serving", "rollback", self.serving), 2,
                        "HEAD is missing or damaged",
                        f"cistern serving rollback {self.serving} --to {second}", first)
            self.run_ok("cistern", "serving", "rollback", self.serving, "--to", first)
            self.assertEqual(self.published_name(), first)
            with Model(self.serving) as model:
                self.assertEqual(model.describe()["version"], first)
        (self.serving / "HEAD").unlink()
        with self.assertRaisesRegex(ServeError, f"the newest {second}: choose one .cistern serving rollback"):
            Model(self.serving)
        self.expect(run_program("cistern", "serve", self.serving, "--port", 0, "--grpc-port", 0), 5,
                    f"the newest {second}: choose one (cistern serving rollback)")
        (self.serving / "HEAD").mkdir()
        for command in (("serve", "--port", 0, "--grpc-port", 0), ("serving", "verify"), ("serving", "rollback")):
            self.expect(run_program("cistern", *command, self.serving), 2, "HEAD is not the file",
                        "remove it, and name a version (cistern serving rollback)")
        (self.serving / "HEAD").rmdir()
        self.run_ok("cistern", "serving", "rollback", self.serving, "--to", first)
        (self.serving / "BASE_LOCK").touch()
        (self.serving / "HEAD.tmp").touch()  # of an export that was killed
        self.export("--model", run)
        self.assertGreater(self.published_name(), second)


if __name__ == "__main__":
    unittest.main(verbosity=2)
