"""Runs the command line beside the package."""

import subprocess

from cistern_ps import programs


def run_cistern(*words):
    """Runs `cistern WORDS` and returns its standard output; a failure shows all that it printed."""
    done = subprocess.run([programs.find("cistern"), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"cistern {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
