#!/usr/bin/env python3
"""Checks that the programs of a release build are hardened, and that the check finds each thing that is missing."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from check_hardening import faults_of  # noqa: E402

SOURCE = """
#include <string.h>
int main(int argc, char** argv) {
  char copy[16];
  strcpy(copy, argv[argc - 1]);
  return copy[0];
}
"""
FLAGS = ["-O2", "-fPIE", "-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack", "-fstack-protector-strong",
         "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]


class Hardening(unittest.TestCase):
    def test_programs_and_library(self):
        programs = pathlib.Path(os.environ["CISTERN_BIN"])
        files = [programs / name for name in ("cistern", "cistern-server", "cistern-worker")]
        files += sorted(programs.parent.glob("lib/libcistern_serve.so"))
        self.assertEqual(len(files), 4, files)
        for file in files:
            self.assertEqual(list(faults_of(file)), [], file)

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler to build the counterexamples with")
    def test_each_fault_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"

            def faults(flags):
                subprocess.run(["cc", *flags, "-x", "c", "-", "-o", program], input=SOURCE, text=True, check=True,
                               stderr=subprocess.DEVNULL)
                return " ".join(faults_of(program))

            def instead(old, new):
                return faults([new if flag == old else flag for flag in FLAGS])

            self.assertEqual(faults(FLAGS), "")
            self.assertIn("not position-independent", faults([*FLAGS, "-no-pie", "-fno-pie"]))
            self.assertIn("there is no RELRO", instead("-Wl,-z,relro", "-Wl,-z,norelro"))
            self.assertIn("RELRO is partial", instead("-Wl,-z,now", "-Wl,-z,lazy"))
            self.assertIn("stack is executable", instead("-Wl,-z,noexecstack", "-Wl,-z,execstack"))
            self.assertIn("return address", instead("-fstack-protector-strong", "-fno-stack-protector"))
            self.assertIn("fortified", instead("-D_FORTIFY_SOURCE=2", "-D_FORTIFY_SOURCE=0"))

    def test_other_files_are_refused(self):
        with self.assertRaises(ValueError):
            list(faults_of(__file__))


if __name__ == "__main__":
    unittest.main()
