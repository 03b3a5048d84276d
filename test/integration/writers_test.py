"""A fleet has one writer at a time, until another takes over; servers log claims and refusals."""

import unittest

from programs import ProgramTest, Servers, finish, run, start, wait_for


class Writers(ProgramTest):

    def setUp(self):
        super().setUp()
        self.write_model(self.change)

    def change(self, content):
        content["solver"].update(num_epochs=1000000, eval_interval=0, display=0)

    def words(self, name, servers, *flags):
        return ("cistern-worker", self.config, "--out", self.folder / name, "--servers",
                servers.addresses, "--connect-timeout", 5,
                *(() if "--resume" in flags else ("--continue",)), *flags)

    def passes(self, name):
        path = self.folder / name / "metrics.jsonl"
        return path.read_text().count('"event":"pass"') if path.exists() else 0

    def begin(self, name, servers, *flags):
        """Starts a training run and waits for its first commit."""
        worker = start(*self.words(name, servers, *flags))
        goal = self.passes(name) + 2
        wait_for(lambda: worker.poll() is not None or self.passes(name) >= goal, "passes")
        self.assertIsNone(worker.poll())
        return worker

    def log(self, server):
        with open(server.log.name, encoding="utf-8") as file:
            return file.read()

    def test_second_training_fails_and_the_first_continues(self):
        with Servers(2, self.folder, durability="commit") as servers:
            first = self.begin("first", servers)
            second = run(*self.words("second", servers))
            self.expect(second, 1, "another writer is at work", "cistern-worker, run ",
                        "--take-over")
            before = self.passes("first")
            wait_for(lambda: self.passes("first") > before + 2, "passes of the first")
            for command in (("shrink",), ("save", "--name", "delta", "--mode", "delta")):
                refused = run("cistern", command[0], "--servers", servers.addresses, *command[1:])
                self.expect(refused, 1, "another writer is at work")
            self.expect(run("cistern", "save", "--servers", servers.addresses, "--name", "all"), 0)
            self.assertIsNone(first.poll())
            heir = self.begin("heir", servers, "--take-over")
            self.expect(finish(first), 1, "fenced")
            heir.kill()
            finish(heir)

    def test_killed_training_does_not_block_the_next(self):
        with Servers(2, self.folder, durability="commit") as servers:
            worker = self.begin("run", servers)
            worker.kill()
            finish(worker)
            again = self.begin("run", servers, "--resume")
            again.kill()
            finish(again)

    def test_servers_log_claims_and_refusals(self):
        with Servers(1, self.folder, durability="commit") as servers:
            worker = self.begin("run", servers)
            run(*self.words("second", servers, "--cluster", "other"))
            self.expect(run(*self.words("third", servers)), 1)
            worker.kill()
            finish(worker)
            log = self.log(servers.all[0])
            self.assertRegex(log, r"term 1 claimed by cistern-worker, run [0-9a-f]{16}, process \d+ on .* at ipv4:127")
            self.assertRegex(log, r"commit 1 decided: pass 1, term 1, 1 files")


if __name__ == "__main__":
    unittest.main()
