#!/usr/bin/env python3
"""Steps of the dense rules in numpy, for dense_rule_test.cc.

Written from PSLib's formulas alone, without the code under test. Each step is computed in float64
from float32 state and rounded once:

    python3 test/server/reference/dense_rule.py > test/server/reference/dense_rule_golden.h
"""
import numpy as np

STEPS, ROWS = 4, 3
F = np.float32


def c(x):
    """A constant as a message carries it: rounded to float32."""
    return np.float64(F(x))


LR, BETA1, BETA2, EPS, RHO, MU, DECAY = map(c, (0.01, 0.9, 0.999, 1e-8, 0.9999, 0.99, 0.999999))


def sgd(s, g):
    s["w"] = s["w"] - LR * g


def adam(s, g):
    s["step"] = s["step"] + 1
    s["m"] = BETA1 * s["m"] + (1 - BETA1) * g
    s["v"] = BETA2 * s["v"] + (1 - BETA2) * g * g
    # The textbook's form: bias-corrected moments.
    m_hat = s["m"] / (1 - BETA1 ** s["step"])
    v_hat = s["v"] / (1 - BETA2 ** s["step"])
    s["w"] = s["w"] - LR * m_hat / (np.sqrt(v_hat) + EPS)


def adam_d2sum(s, g):
    s["d2"] = s["d2"] * RHO + 1
    s["g2"] = s["g2"] * RHO + g * g
    scale = np.sqrt((s["d2"] + s["d2"] * EPS) / (s["g2"] + s["d2"] * EPS))
    s["mom"] = (s["mom"] + g) * MU - g
    s["w"] = s["w"] + LR * s["mom"] * scale


def plain_sum(s, g):
    s["w"] = s["w"] + g


def summary(s, g):
    s["w"] = s["w"] * DECAY + g


RULES = {
    "SGD": (sgd, ["w"]),
    "ADAM": (adam, ["w", "m", "v", "step"]),
    "ADAM_D2SUM": (adam_d2sum, ["w", "avg", "d2", "g2", "mom"]),
    "SUM": (plain_sum, ["w"]),
    "SUMMARY": (summary, ["w"]),
}


def first(column):
    start = np.array([0.5, -1.25, 1000.0]) if column == "w" else np.zeros(ROWS)
    return start.astype(np.float64)


def gradient(step):
    return (np.array([0.1, -2.0, 0.0]) * (step + 1) - np.array([0.0, 1.0, 0.25])).astype(F)


def text(x):
    return float(x).hex() + "f"


print("""// Made by dense_rule.py; do not edit.
// clang-format off
#pragma once

#include <vector>

#include "proto/schema.pb.h"

namespace cistern {
""")
print(f"// Gradients of {ROWS} rows, step after step.")
print("inline const std::vector<std::vector<float>> kGoldenGradients = {")
for step in range(STEPS):
    print("    {" + ", ".join(text(g) for g in gradient(step)) + "},")
print("};\n")
print("// Rows of a rule, row-major, before the first step and after the last.")
print("struct GoldenRule {\n  v1::DenseRule::Kind kind;\n  std::vector<float> before, after;\n};")
print("inline const std::vector<GoldenRule> kGoldenRules = {")
for name, (rule, columns) in RULES.items():
    state = {column: first(column) for column in columns}
    before = np.stack([state[column] for column in columns], axis=1)
    for step in range(STEPS):
        rule(state, gradient(step).astype(np.float64))
        state = {column: cells.astype(F).astype(np.float64) for column, cells in state.items()}
    after = np.stack([state[column] for column in columns], axis=1)
    rows = ["{" + ", ".join(text(x) for x in cells.flatten()) + "}" for cells in (before, after)]
    print(f"    {{v1::DenseRule::{name},\n     {rows[0]},\n     {rows[1]}}},")
print("};\n\n}  // namespace cistern")
