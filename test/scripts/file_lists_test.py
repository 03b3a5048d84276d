#!/usr/bin/env python3
"""Tests the search for files that no list names (scripts/file_lists.py)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from file_lists import unlisted  # noqa: E402


class FileLists(unittest.TestCase):
    def errors(self, files):
        return list(unlisted(sorted(files), files.get))

    def test_sources_are_named_by_a_cmake_file(self):
        files = {"CMakeLists.txt": "add_subdirectory(a)", "a/CMakeLists.txt": "cistern_library(a FILES x.cc)  # y.cc",
                 "a/x.cc": "", "a/y.cc": "", "b/x.cc": ""}
        self.assertEqual([e.split(":")[0] for e in self.errors(files)], ["a/y.cc", "b/x.cc"])
        files["b/CMakeLists.txt"] = 'cistern_test(b FILES ../a/y.cc "${PROJECT_SOURCE_DIR}/b/x.cc")'
        self.assertEqual(self.errors(files), [])

    def test_an_op_is_one_word(self):
        files = {"cuda/CMakeLists.txt": "set(ops dense/elu)", "cuda/op/dense/elu_cpu.cc": "", "cuda/op/dense/elu.cu": "",
                 "cuda/op/dense/relu.cu": ""}
        self.assertEqual([e.split(":")[0] for e in self.errors(files)], ["cuda/op/dense/relu.cu"])

    def test_headers_have_a_row_in_the_nearest_readme(self):
        files = {"README.md": "", "a/README.md": "| [x.h](x.h) | what |", "a/x.h": "", "a/b/y.h": "", "c.h": "", "test/z.h": ""}
        self.assertEqual(self.errors(files), ["a/b/y.h: a/README.md has no row for it"])
        files["a/b/README.md"] = "[y.h](y.h)"
        self.assertEqual(self.errors(files), [])


if __name__ == "__main__":
    unittest.main()
