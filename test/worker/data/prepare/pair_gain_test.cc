#include "worker/data/prepare/pair_gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace cistern::data {
namespace {

LabelChoice ClickLabel() {
  LabelChoice label;
  label.positive = {"1"};
  label.negative = {"0"};
  return label;
}

// 60,000 rows of 100 users and 100 items; log_odds(draw, user, item) of a click.
template <typename LogOdds>
TableProfile ProfileOf(size_t rows, const LogOdds& log_odds) {
  TableProfile profile;
  profile.columns.resize(3);
  std::mt19937_64 draw(3);
  for (size_t i = 0; i < rows; ++i) {
    const size_t user = draw() % 100, item = draw() % 100;
    const double click = 1 / (1 + std::exp(-log_odds(user, item)));
    const bool is_click = static_cast<double>(draw() >> 11) * 0x1p-53 < click;
    const std::vector<std::string> row = {is_click ? "1" : "0", "u" + std::to_string(user),
                                          "i" + std::to_string(item)};
    for (const std::string& field : row) profile.field_hashes.push_back(HashOfField(field));
    if (i < 1000) profile.sample.push_back(row);
  }
  return profile;
}

// Clicks where user and item are both even or both odd: no value means anything alone, so a linear
// model has the log loss of a coin, log 2, and the truth has that of odds of 9 to 1.
TEST(PairGain, IsWhatTheTruthSavesWherePairsDecide) {
  const TableProfile profile = ProfileOf(40000, [](size_t user, size_t item) {
    return user % 2 == item % 2 ? std::log(9.0) : -std::log(9.0);
  });
  const double truth = -0.9 * std::log(0.9) - 0.1 * std::log(0.1);
  const double gain = PairGain(profile, ClickLabel(), {1, 2});
  EXPECT_NEAR(gain, 1 - truth / std::log(2.0), 0.05);
  EXPECT_EQ(PairGain(profile, ClickLabel(), {1}), 0) << "one slot has no pairs";
}

TEST(PairGain, IsNothingWhereEachValueDecidesAlone) {
  const TableProfile profile = ProfileOf(40000, [](size_t user, size_t item) {
    return (user % 7 < 3 ? 1.0 : -1.0) + (item % 5 < 2 ? 1.0 : -1.0);
  });
  EXPECT_LT(std::abs(PairGain(profile, ClickLabel(), {1, 2})), kPairsFrom / 2);
}

// A pair has four rows, and means what chance says.
TEST(PairGain, IsNothingWherePairsAreNoise) {
  std::mt19937_64 draw(5);
  std::vector<double> noise(100 * 100);
  for (double& x : noise) x = draw() % 2 ? 0.5 : -0.5;
  const TableProfile profile =
      ProfileOf(40000, [&](size_t user, size_t item) { return noise[user * 100 + item]; });
  EXPECT_LT(PairGain(profile, ClickLabel(), {1, 2}), kPairsFrom / 2);
}

TEST(PairGain, NeedsRowsOfBothLabels) {
  const TableProfile profile = ProfileOf(1900, [](size_t user, size_t item) {
    return user % 2 == item % 2 ? std::log(9.0) : -std::log(9.0);
  });
  EXPECT_EQ(PairGain(profile, ClickLabel(), {1, 2}), 0);
}

}  // namespace
}  // namespace cistern::data
