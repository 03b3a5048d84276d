#!/usr/bin/env python3
"""Tests the search for names that two files define (scripts/repeated_names.py)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from repeated_names import names_of, repeated_names  # noqa: E402


def headers(*bodies):
    return [(f"{i}.h", f"#pragma once\nnamespace a {{\n{body}\n}}  // namespace a\n") for i, body in enumerate(bodies)]


class RepeatedNames(unittest.TestCase):
    def assert_found(self, name, *bodies):
        errors = list(repeated_names(headers(*bodies)))
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(f"1.h:3: a::{name} is already in 0.h:3", errors[0])

    def assert_none(self, *bodies):
        self.assertEqual(list(repeated_names(headers(*bodies))), [])

    def test_variables_of_different_types(self):
        self.assert_found("kAbsent", "inline constexpr uint8_t kAbsent = 0xFF;",
                          'inline constexpr char kAbsent[] = "; {";  // a dash')
        self.assert_found("kB", "inline constexpr size_t kA = 26, kB = 13;", "inline const std::map<int, int> kB{};")
        self.assert_found("counter", "inline int counter = 0;", "inline long counter = 1;")

    def test_functions_templates_and_types(self):
        self.assert_found("Ends(conststd::string&)", "inline bool Ends(const std::string& text) { return f({1}); }",
                          "bool Ends(const std::string&);")
        self.assert_found("Sum(T)", "template <typename T, int n = (1 > 0)>\nT Sum(T value) { return value; }",
                          "template <class T>\nT Sum(T one) {\n  return one;\n}")
        self.assert_found("Place", "struct Place {\n  int at = 0;\n};", "class Place final : public Base {};")
        self.assert_found("Kind", "enum class Kind { kOne };", "enum class Kind : int { kTwo };")

    def test_what_is_not_one_name(self):
        self.assert_none("void F(int a);", "void F(long a);")  # overloads
        self.assert_none("constexpr int kMost = 1;", "constexpr int kMost = 2;")  # one in each file
        self.assert_none("struct Place;", "struct Place { int at; };")
        self.assert_none("struct A { int size() const { return 1; } };", "struct B { int size() const; };")
        self.assert_none("namespace {\nint F() { return 1; }\n}", "namespace {\nint F() { return 2; }\n}")
        self.assert_none("namespace b {\nvoid F();\n}", "namespace c {\nvoid F();\n}")
        self.assert_none("/* void F(); */ using T = int;", "// void F();\nusing T = long;\nvoid F();")

    def test_sources_define_what_headers_declare(self):
        header = ("x.h", "namespace a {\nvoid F(int n);\n}")
        source = "namespace a {\nvoid F(int n) {}\n}"
        self.assertEqual(list(repeated_names([header, ("x.cc", source)])), [])
        self.assertEqual(len(list(repeated_names([header, ("x.cc", source), ("y.cc", source)]))), 1)
        self.assertEqual(list(repeated_names([header, ("x.cc", source), ("x_none.cc", source)])), [])

    def test_names_of_declarations(self):
        self.assertEqual(names_of("inline uint64_t operator()(const T& key) const {}"), ["operator()(constT&)"])
        self.assertEqual(names_of("void Set(std::pair<int, int> both = {1, 2}, unsigned long n)"),
                         ["Set(std::pair<int,int>,unsignedlong)"])


if __name__ == "__main__":
    unittest.main()
