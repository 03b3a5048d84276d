"""What `cistern train` shows: a bar that fits 60 and 120 columns and leaves nothing behind; plain lines elsewhere."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import unittest

from programs import BIN, ProgramTest, run

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class ProgressTest(ProgramTest):
    def setUp(self):
        super().setUp()
        lines = ["label,user,city"] + [f"{i * 7 % 3 // 2},u{i * 13 % 97},c{i % 5}" for i in range(20000)]
        (self.folder / "clicks.csv").write_text("\n".join(lines) + "\n")

    def words(self, out):
        return ["train", str(self.folder / "clicks.csv"), "--model", "lr", "--out", str(self.folder / out), "--set",
                "solver.num_epochs=3"]

    def on_terminal(self, out, columns, **variables):
        """Everything that a terminal of this width receives."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm", **variables}
        process = subprocess.Popen([str(BIN / "cistern"), *self.words(out)], stdin=subprocess.DEVNULL,
                                   stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        got = b""
        while True:
            ready, _, _ = select.select([ours], [], [], 100)
            try:
                block = os.read(ours, 65536) if ready else b""
            except OSError:  # the other side is closed
                block = b""
            if not block:
                break
            got += block
        os.close(ours)
        self.assertEqual(process.wait(timeout=100), 0, got)
        return got.decode()

    def test_the_bar_fits_the_terminal_and_leaves_nothing_behind(self):
        for columns in (60, 120):
            with self.subTest(columns):
                said = self.on_terminal(f"run{columns}", columns)
                # A fast machine shows only the empty bar, before the first step.
                bars = [ESCAPE.sub("", part) for part in re.split(r"[\r\n]", said) if re.search("[━─]", part)]
                self.assertTrue(bars, said)
                for bar in bars:
                    self.assertLess(len(bar), columns + 1, bar)
                end = ESCAPE.sub("", said[said.rfind("trained "):])
                self.assertIn("training loss", end)
                self.assertIn("evaluation auc", end)
                self.assertNotRegex(end, "[━─]")
                # The bar is erased, not written over: the line of the result begins at column 1.
                before = said[:said.rfind("trained ")]
                self.assertRegex(before[-20:], r"(\r\x1b\[K|\r\x1b\[2K|\n)$")

    def test_colours_are_for_terminals_that_want_them(self):
        self.assertNotIn("\x1b[3", self.on_terminal("plain", 100, NO_COLOR="1"))

    def test_a_dumb_terminal_and_a_pipe_get_whole_lines(self):
        dumb = self.on_terminal("dumb", 80, TERM="dumb")
        piped = run("cistern", *self.words("piped"))
        for said in (dumb, piped.err):
            self.assertNotIn("\x1b", said)
            self.assertNotIn("━", said)
            self.assertIn("event=eval", said)
        self.assertNotIn("\r", piped.err)


if __name__ == "__main__":
    unittest.main()
