"""cistern top against real servers: piped, as JSON, and on a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest

from programs import BIN, ProgramTest, Servers, run, wait_for


class TopTest(ProgramTest):
    def setUp(self):
        super().setUp()
        servers = Servers(2, self.folder)
        self.addCleanup(servers.__exit__)
        self.servers = servers
        self.write_model()
        self.run_ok("cistern", "train", self.config, "--servers", servers.addresses, "--out", self.folder / "run")

    def top(self, *flags):
        return run("cistern", "top", "--servers", self.servers.addresses, "--interval", "0.1", *flags)

    def test_shows_what_status_shows_with_rates(self):
        result = self.expect(self.top("--count", 3, "--json"), 0)
        lines = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(len(lines), 3)
        status = self.run_ok("cistern", "status", "--servers", self.servers.addresses, "--json").json()
        for line in lines:
            self.assertEqual(line["tables"], status["tables"])
            for server, rank in zip(line["servers"], (0, 1)):
                self.assertEqual(server["rank"], rank)
                self.assertEqual(server["rates"], {"pulled_keys_per_second": 0, "pushed_keys_per_second": 0,
                                                   "passes_per_second": 0})

    def test_text_has_a_row_for_each_server_and_names_one_that_is_down(self):
        self.servers.all[1].kill()
        result = self.expect(self.top("--count", 1, "--timeout", 1), 0)
        rows = result.out.splitlines()
        self.assertRegex(rows[0], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  2 servers, 1 answer: ")
        self.assertTrue(any(re.match(r" *0/2 +127\.0\.0\.1:\d+ +ready ", row) for row in rows), result.out)
        self.assertTrue(any("down" in row for row in rows), result.out)

    def test_a_wrong_interval_is_refused(self):
        self.expect(run("cistern", "top", "--servers", self.servers.addresses, "--interval", "0"), 2, "--interval")

    def test_a_terminal_is_left_as_it_was(self):
        leader, follower = pty.openpty()
        process = subprocess.Popen([str(BIN / "cistern"), "top", "--servers", self.servers.addresses,
                                    "--interval", "0.1"], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
                                   env=dict(os.environ, TERM="xterm"))
        os.close(follower)
        shown = bytearray()

        def read():
            while select.select([leader], [], [], 0.05)[0]:
                try:
                    piece = os.read(leader, 65536)
                except OSError:  # the other end is closed
                    return
                if not piece:
                    return
                shown.extend(piece)

        def shows_twice():
            read()
            return shown.count(b"\x1b[H") >= 2

        wait_for(shows_twice, "two displays")
        process.send_signal(signal.SIGINT)
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            read()
        read()
        os.close(leader)
        self.assertEqual(process.returncode, 0, bytes(shown))
        self.assertTrue(shown.startswith(b"\x1b[?1049h\x1b[?25l"), bytes(shown[:40]))
        # The screen and the cursor come back, and the last display stays.
        last = shown.rindex(b"\x1b[?25h\x1b[?1049l")
        self.assertIn(b"2 servers: ", shown[last:])


if __name__ == "__main__":
    unittest.main()
