"""Programs and servers that Python starts: how they are found, what their messages may hold, when they end."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import cistern_ps as cs
from cistern_ps import programs

SERVERS = """
import os, signal, sys
import numpy as np
import cistern_ps as cs
servers = cs.servers.start(2)
print(*(process.pid for process in servers._processes), flush=True)
if os.fork() == 0:
    sys.exit(0)  # runs what Python runs at its end
os.wait()
try:
    os.killpg(0, signal.SIGINT)  # Ctrl-C in a terminal, or the button of a notebook
    signal.pause()
except KeyboardInterrupt:
    pass
with cs.connect(servers.addresses) as fleet:
    table = fleet.table("t", dim=1)
    table.push(np.array([1]), np.array([[1.0]], np.float32))
    fleet.commit()
    print(len(table))
"""


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "a", "b")  # `find` looks two folders up, too
        self.folder.mkdir(parents=True)

    def find_in(self, **environment):
        """`programs.find` of a package in this folder."""
        package = self.folder / "cistern_ps" / "programs.py"
        with mock.patch.object(programs, "__file__", str(package)), \
                mock.patch.dict(os.environ, {"CISTERN_BIN": "", **environment}):
            return programs.find("cistern")

    def program_in(self, folder, mode):
        (self.folder / folder).mkdir(parents=True)
        path = self.folder / folder / "cistern"
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        return path

    def test_a_program_that_lost_its_permission_is_named(self):
        path = self.program_in("cistern_ps/bin", 0o644)
        other = self.program_in("other", 0o755)  # perhaps of another version
        with self.assertRaisesRegex(cs.UsageError, "may not be executed") as caught:
            self.find_in(PATH=str(other.parent))
        self.assertIn(str(path), str(caught.exception))
        self.assertIn("chmod +x", caught.exception.fix)
        path.chmod(0o755)
        self.assertEqual(self.find_in(), str(path))

    def test_console_scripts_do_not_find_themselves(self):
        script = self.program_in("bin", 0o755)
        with mock.patch.object(sys, "executable", str(script.parent / "python")):
            with self.assertRaisesRegex(cs.UsageError, "is missing"):
                self.find_in(PATH=str(script.parent))
        self.assertEqual(self.find_in(PATH=str(script.parent)), str(script))

    def test_messages_hold_any_bytes(self):
        with self.assertRaisesRegex(cs.UsageError, r"caf\\xe9\.json"):
            cs.evaluate(os.fsdecode(bytes(self.folder) + b"/caf\xe9.json"), servers="127.0.0.1:1")

    def test_servers_end_with_the_process_that_started_them_and_not_before(self):
        ended = subprocess.run([sys.executable, "-c", SERVERS], capture_output=True, text=True, start_new_session=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        pids, rows = ended.stdout.splitlines()
        self.assertEqual(rows, "1")
        for pid in map(int, pids.split()):
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)

    def test_servers_end_with_their_object(self):
        servers = cs.servers.start(1)
        (process,) = servers._processes
        del servers
        self.assertIsNotNone(process.returncode)


if __name__ == "__main__":
    unittest.main()
