#include "common/base/amount_text.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

TEST(DurationText, PicksTheUnit) {
  EXPECT_EQ(DurationText(0.04), "0.0s");
  EXPECT_EQ(DurationText(59.94), "59.9s");
  EXPECT_EQ(DurationText(59.99), "1m00s");
  EXPECT_EQ(DurationText(3599.4), "59m59s");
  EXPECT_EQ(DurationText(3900), "1h05m");
  EXPECT_EQ(DurationText(-1), "?");
}

TEST(CountAndBytesText, PickTheUnit) {
  EXPECT_EQ(CountText(980), "980");
  EXPECT_EQ(CountText(1234567), "1.23M");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(3ull << 30), "3.0 GiB");
}

}  // namespace
}  // namespace cistern
