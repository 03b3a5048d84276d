#include "worker/data/recipe/compound_amount.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

double AmountIn(Scale::Family family, absl::string_view text) {
  const std::optional<CompoundAmount> amount = ReadCompoundAmount(text);
  return amount && amount->family == family ? amount->amount : -1;
}

// A foot has 12 inches of 2.54 cm, a pound of 453.59237 g 16 ounces.
TEST(CompoundAmount, PartsAreAdded) {
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "1h 23m"), 4980);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "2 days, 3 hours and 5 min"), 183900);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "2h30"), 9000);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "PT1H23M"), 4980);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "0:12:31.5"), 751.5);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "1:60.0"), 120);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "-1 days +23:59:50"), -10);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kTime, "3 years 6 months"), 3.5 * 365.25 * 86400);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kLength, "5 ft 11 in"), 71 * 0.0254);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kLength, "5'11\""), 71 * 0.0254);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kLength, "1 m 80 cm"), 1.8);
  EXPECT_DOUBLE_EQ(AmountIn(Scale::kMass, "3 lb 5 oz"), 3.3125 * 453.59237);
}

TEST(CompoundAmount, ATimeOfDayIsUncertain) {
  EXPECT_FALSE(ReadCompoundAmount("12:31")->is_certain);
  EXPECT_TRUE(ReadCompoundAmount("12:31.5")->is_certain);
  EXPECT_TRUE(ReadCompoundAmount("0:12:31")->is_certain);
}

TEST(CompoundAmount, OtherTextsAreNone) {
  for (const char* const text : {"", "5", "5 ft", "11 in 5 ft", "5 ft 13 in", "5 ft 3 oz", "P1M",
                                 "P", "17:99", "u17", "1:2", "5'", "12 kg"}) {
    EXPECT_FALSE(ReadCompoundAmount(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace cistern::data
