#include "common/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cistern {
namespace {

// The value of 16 bits according to the definition of the format.
double ValueOf(HalfBits half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : NAN;
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryHalfSurvivesARoundTripThroughFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<HalfBits>(bits);
    const double value = ValueOf(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(half))) << bits;
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(HalfToFloat(half))))) << bits;
      continue;
    }
    ASSERT_EQ(double{HalfToFloat(half)}, value) << bits;
    ASSERT_EQ(FloatToHalf(HalfToFloat(half)), half) << bits;
  }
}

TEST(Half, FloatRoundsToTheNearestHalfAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const auto low = static_cast<HalfBits>(bits), high = static_cast<HalfBits>(bits + 1);
    const auto middle = static_cast<float>((ValueOf(low) + ValueOf(high)) / 2);
    ASSERT_EQ(FloatToHalf(middle), bits % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(FloatToHalf(-std::nextafter(middle, 1e30f)), high | 0x8000) << bits;
  }
}

TEST(Half, FloatsThatAreTooLargeBecomeInfinite) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(std::nextafter(65520.0f, 0.0f)), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xFC00);
}

TEST(Bfloat16, IsTheUpperHalfOfAFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<HalfBits>(bits);
    const float value = Bfloat16ToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(FloatToBfloat16(value), half);
    if (std::isinf(value) || (half & 0x7FFF) == 0x7F7F) continue;
    // The midpoint rounds to the even neighbour, the floats next to it to the nearest one.
    const auto next = static_cast<HalfBits>(half + 1);
    const auto middle = static_cast<float>((double{value} + double{Bfloat16ToFloat(next)}) / 2);
    ASSERT_EQ(FloatToBfloat16(middle), bits % 2 == 0 ? half : next) << bits;
    ASSERT_EQ(FloatToBfloat16(std::nextafter(middle, value)), half) << bits;
    ASSERT_EQ(FloatToBfloat16(std::nextafter(middle, Bfloat16ToFloat(next))), next) << bits;
  }
  EXPECT_TRUE(std::isinf(Bfloat16ToFloat(FloatToBfloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace cistern
