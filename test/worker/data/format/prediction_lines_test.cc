#include "worker/data/format/prediction_lines.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cistern::data {
namespace {

TEST(PredictionLines, OneLineASampleAndOnePairALabel) {
  std::string text = "before\n";
  AppendPredictionLines({1, 0, 0, -1}, {0.5f, 0.25f, 1, 0}, 2, &text);
  EXPECT_EQ(text, "before\n1\t0.5\t0\t0.25\n0\t1\t-1\t0\n");
}

TEST(PredictionLines, ReadBackTheSameFloats) {
  for (float prediction = 1e-7f; prediction < 1; prediction *= 1.37f) {
    std::string text;
    AppendPredictionLines({0}, {prediction}, 1, &text);
    EXPECT_EQ(std::strtof(text.c_str() + 2, nullptr), prediction);
  }
}

}  // namespace
}  // namespace cistern::data
