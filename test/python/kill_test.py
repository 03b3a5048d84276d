"""kill -9 of a session in the middle of steps and of commits: it ends with the bits of an undisturbed one.

CISTERN_KILL_ROUNDS: how often it is killed (5).
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HERE = pathlib.Path(__file__).parent

PROGRAM = """
import os, random, signal, sys, threading, time
sys.path.insert(0, {here!r})
import cistern_ps as cs, torch_test
folder, kill = sys.argv[1], sys.argv[2]
rng = random.Random(kill)
def die_in(seconds):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
s, scheduler = torch_test.session(folder, commit_every=3)
if kill.startswith("commit"):
    commit = s.fleet.commit
    left = [rng.randrange(1, 4)]
    def dying(*arguments):
        left[0] -= 1
        if left[0] == 0:
            die_in(rng.random() * 0.008)
        return commit(*arguments)
    s.fleet.commit = dying
elif kill.startswith("step"):
    until = s.restore()
    die_in(rng.random() * 0.15)
print(torch_test.train(s, scheduler), s.steps)
"""


class Kill(unittest.TestCase):
    def play(self, folder, kill=""):
        return subprocess.run([sys.executable, "-c", PROGRAM.format(here=str(HERE)), folder, kill],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_killed_session_ends_with_the_bits_of_an_undisturbed_one(self):
        rounds = int(os.environ.get("CISTERN_KILL_ROUNDS", 5))
        seed = int(os.environ.get("CISTERN_SEED", random.randrange(10**6)))
        print(f"CISTERN_SEED={seed}")
        with tempfile.TemporaryDirectory() as whole:
            expected = self.play(whole)
        self.assertEqual(expected.returncode, 0, expected.stderr)
        killed = 0
        while killed < rounds:
            with tempfile.TemporaryDirectory() as folder:
                done = None
                while done is None:
                    kill = f"{('commit', 'step')[killed % 2]} {seed} {killed}" if killed < rounds else ""
                    result = self.play(folder, kill)
                    if result.returncode == 0:
                        done = result.stdout
                    else:
                        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
                        killed += 1
                self.assertEqual(done, expected.stdout)


if __name__ == "__main__":
    unittest.main()
