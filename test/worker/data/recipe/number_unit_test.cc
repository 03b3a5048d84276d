#include "worker/data/recipe/number_unit.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

TEST(NumberUnit, MultipliesByTheUnitsOfAFamily) {
  // The International System of Units, and IEC 80000-13 for KiB.
  const std::pair<const char*, double> times[] = {{"ms", 1e-3}, {"s", 1},    {"min", 60},
                                                  {"m", 60},    {"h", 3600}, {"days", 86400}};
  for (const auto& [unit, seconds] : times) {
    ASSERT_NE(ScaleOf(unit, Scale::kTime), nullptr) << unit;
    EXPECT_DOUBLE_EQ(ScaleOf(unit, Scale::kTime)->factor, seconds) << unit;
  }
  EXPECT_DOUBLE_EQ(ScaleOf("m", Scale::kLength)->factor, 1);
  EXPECT_DOUBLE_EQ(ScaleOf("km", Scale::kLength)->factor, 1000);
  EXPECT_DOUBLE_EQ(ScaleOf("kg", Scale::kMass)->factor, 1000);  // grams
  // The international yard and pound of 1959.
  EXPECT_DOUBLE_EQ(ScaleOf("mi", Scale::kLength)->factor, 5280 * 12 * 0.0254);
  EXPECT_DOUBLE_EQ(ScaleOf("oz", Scale::kMass)->factor, 453.59237 / 16);
  EXPECT_DOUBLE_EQ(ScaleOf("cl", Scale::kVolume)->factor, 0.01);
  EXPECT_DOUBLE_EQ(ScaleOf("KiB", Scale::kBytes)->factor, 1024);
  EXPECT_DOUBLE_EQ(ScaleOf("B", Scale::kBytes)->factor, 1);
  EXPECT_DOUBLE_EQ(ScaleOf("B", Scale::kCount)->factor, 1e9);
  EXPECT_EQ(ScaleOf("kg", Scale::kTime), nullptr);
  EXPECT_EQ(ScaleOf("", Scale::kCount), nullptr);
}

TEST(NumberUnit, ABaseUnitNamesItsFamily) {
  for (const auto& [family, unit] : kBaseUnits) {
    EXPECT_EQ(FamilyOf(unit), family) << unit;
    EXPECT_EQ(ScaleOf(unit, family)->factor, 1) << unit;
  }
  EXPECT_EQ(FamilyOf(""), Scale::kCount);
  EXPECT_EQ(FamilyOf("USD"), Scale::kCount);
}

TEST(NumberUnit, ACurrencyHasSeveralNames) {
  EXPECT_TRUE(AreSameUnits("$", "USD"));
  EXPECT_TRUE(AreSameUnits("Rs.", "INR"));
  EXPECT_TRUE(AreSameUnits("kWh", "kWh"));
  EXPECT_TRUE(AreSameUnits("items", "item"));
  EXPECT_FALSE(AreSameUnits("m", "ms"));
  EXPECT_FALSE(AreSameUnits("$", "EUR"));
  EXPECT_FALSE(AreSameUnits("$", ""));
  EXPECT_TRUE(MayStandBefore("usd"));
  EXPECT_FALSE(MayStandBefore("km"));
}

}  // namespace
}  // namespace cistern::data
