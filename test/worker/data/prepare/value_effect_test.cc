#include "worker/data/prepare/value_effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace cistern::data {
namespace {

// Adds rows of one value, of which so many are positive.
void Add(const std::string& value, size_t rows, size_t positive, TableProfile* profile) {
  for (size_t i = 0; i < rows; ++i) profile->sample.push_back({i < positive ? "1" : "0", value});
}

LabelChoice Label() {
  LabelChoice label;
  label.positive = {"1"};
  label.negative = {"0"};
  return label;
}

// By hand: of 10/20, 5/20 and 9/20, whose share is 2/5, the middle is 9/40 below the mean of the
// others: (9/40)^2 / (2/5 3/5 60/59 3/40), for 60 rows and 1/20 + (1/20 + 1/20) / 4 = 3/40. Of
// 2/10, 4/40 and 6/50, with share 3/25, it is 3/50 below: (3/50)^2 / (3/25 22/25 100/99 (1/40 +
// 3/100)).
TEST(ValueEffect, ComparesValuesWithTheirNeighbours) {
  TableProfile profile;
  Add("10", 40, 4, &profile);
  Add("-1.5", 20, 10, &profile);
  Add("2", 20, 5, &profile);
  Add("3e0", 20, 9, &profile);
  Add("9", 10, 2, &profile);
  Add("11", 50, 6, &profile);
  Add("12", 50, 6, &profile);  // of no triple
  Add("", 30, 30, &profile);   // a missing value is no number
  const double first = 81.0 / 1600 / (6.0 / 25 * 60 / 59 * 3 / 40);
  const double second = 9.0 / 2500 / (66.0 / 625 * 100 / 99 * (1.0 / 40 + 3.0 / 100));
  EXPECT_NEAR(ValueEffect(profile, Label(), 1), (first + second - 2) / 2, 1e-12);
}

// Rates of .1 to .9, in steps of .1, of 1000 rows each.
TEST(ValueEffect, IsBelowZeroForALine) {
  TableProfile profile;
  for (size_t i = 1; i <= 9; ++i) Add(std::to_string(i), 1000, 100 * i, &profile);
  EXPECT_NEAR(ValueEffect(profile, Label(), 1), -std::sqrt(1.5), 1e-9);
}

// One value of nine has its own rate, the others have another: 10 - 3 for 3 triples.
TEST(ValueEffect, CountsAKinkOnce) {
  TableProfile profile;
  for (size_t i = 1; i <= 9; ++i) Add(std::to_string(i), 1000, i == 5 ? 900 : 100, &profile);
  EXPECT_NEAR(ValueEffect(profile, Label(), 1), 7 / std::sqrt(6), 1e-9);
}

// 10,000 values of one to three rows each, of which every tenth is positive, wherever it is: too
// few rows for a rate, and many triples to add them up.
TEST(ValueEffect, FindsNoCodesInManyValuesOfFewRows) {
  TableProfile profile;
  std::mt19937_64 random(7);
  for (size_t i = 0; i < 10000; ++i) {
    const size_t rows = 1 + random() % 3;
    for (size_t row = 0; row < rows; ++row) {
      Add(std::to_string(i), 1, random() % 10 == 0 ? 1 : 0, &profile);
    }
  }
  EXPECT_LT(std::abs(ValueEffect(profile, Label(), 1)), 2.5);
}

TEST(ValueEffect, IsZeroWithoutTwoTriplesOfBothClasses) {
  TableProfile profile;
  Add("1", 20, 20, &profile);
  Add("2", 20, 0, &profile);
  Add("3", 20, 0, &profile);
  for (const char* const none : {"4", "5", "6"}) Add(none, 20, 0, &profile);
  EXPECT_EQ(ValueEffect(profile, Label(), 1), 0);
}

}  // namespace
}  // namespace cistern::data
