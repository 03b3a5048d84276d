// Made by dense_rule.py; do not edit.
// clang-format off
#pragma once

#include <vector>

#include "proto/schema.pb.h"

namespace cistern::server {

// Gradients of 3 rows, step after step.
inline const std::vector<std::vector<float>> kGoldenGradients = {
    {0x1.99999a0000000p-4f, -0x1.8000000000000p+1f, -0x1.0000000000000p-2f},
    {0x1.99999a0000000p-3f, -0x1.4000000000000p+2f, -0x1.0000000000000p-2f},
    {0x1.3333340000000p-2f, -0x1.c000000000000p+2f, -0x1.0000000000000p-2f},
    {0x1.99999a0000000p-2f, -0x1.2000000000000p+3f, -0x1.0000000000000p-2f},
};

// Rows of a rule, row-major, before the first step and after the last.
struct GoldenRule {
  v1::DenseRule::Kind kind;
  std::vector<float> before, after;
};
inline const std::vector<GoldenRule> kGoldenRules = {
    {v1::DenseRule::SGD,
     {0x1.0000000000000p-1f, -0x1.4000000000000p+0f, 0x1.f400000000000p+9f},
     {0x1.f5c2900000000p-2f, -0x1.028f5c0000000p+0f, 0x1.f401480000000p+9f}},
    {v1::DenseRule::ADAM,
     {0x1.0000000000000p-1f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, -0x1.4000000000000p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x1.f400000000000p+9f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f},
     {0x1.d83b660000000p-2f, 0x1.72a5aa0000000p-4f, 0x1.3a5bf00000000p-12f, 0x1.0000000000000p+2f, -0x1.35eb860000000p+0f, -0x1.13ac740000000p+1f, 0x1.4f9c180000000p-3f, 0x1.0000000000000p+2f, 0x1.f405200000000p+9f, -0x1.6027560000000p-4f, 0x1.05bf680000000p-12f, 0x1.0000000000000p+2f}},
    {v1::DenseRule::ADAM_D2SUM,
     {0x1.0000000000000p-1f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, -0x1.4000000000000p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x1.f400000000000p+9f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f},
     {0x1.ff0d220000000p-2f, 0x0.0p+0f, 0x1.ffec580000000p+1f, 0x1.332df60000000p-2f, -0x1.446b540000000p-7f, -0x1.3fc1ec0000000p+0f, 0x0.0p+0f, 0x1.ffec580000000p+1f, 0x1.47f98c0000000p+7f, 0x1.e6392e0000000p-3f, 0x1.f400200000000p+9f, 0x0.0p+0f, 0x1.ffec580000000p+1f, 0x1.ffec580000000p-3f, 0x1.42cc140000000p-7f}},
    {v1::DenseRule::SUM,
     {0x1.0000000000000p-1f, -0x1.4000000000000p+0f, 0x1.f400000000000p+9f},
     {0x1.8000000000000p+0f, -0x1.9400000000000p+4f, 0x1.f380000000000p+9f}},
    {v1::DenseRule::SUMMARY,
     {0x1.0000000000000p-1f, -0x1.4000000000000p+0f, 0x1.f400000000000p+9f},
     {0x1.7fffce0000000p+0f, -0x1.93ffde0000000p+4f, 0x1.f37f780000000p+9f}},
};

}  // namespace cistern::server
