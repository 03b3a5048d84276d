#include "common/base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace cistern {
namespace {

constexpr uint64_t kLargest = UINT64_MAX;

TEST(Checked, AddReturnsSumsThatFit) {
  EXPECT_EQ(CheckedAdd(2, 3), 5u);
  EXPECT_EQ(CheckedAdd(kLargest, 0), kLargest);
  EXPECT_EQ(CheckedAdd(kLargest - 7, 7), kLargest);
}

TEST(Checked, AddReturnsNulloptOnOverflow) {
  EXPECT_EQ(CheckedAdd(kLargest, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd(uint64_t{1} << 63, uint64_t{1} << 63), std::nullopt);
}

TEST(Checked, MulReturnsProductsThatFit) {
  EXPECT_EQ(CheckedMul(6, 7), 42u);
  EXPECT_EQ(CheckedMul(kLargest, 0), 0u);
  EXPECT_EQ(CheckedMul(UINT32_MAX, UINT32_MAX), 18446744065119617025u);
}

TEST(Checked, MulReturnsNulloptOnOverflow) {
  EXPECT_EQ(CheckedMul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(CheckedMul(kLargest, 2), std::nullopt);
  EXPECT_EQ(CheckedMul((uint64_t{1} << 62) + 1, 4), std::nullopt);  // wraps to 4
}

}  // namespace
}  // namespace cistern
