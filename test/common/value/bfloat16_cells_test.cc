// Numbers of 16 bits in cells, and the rounding at random, in proportion.
#include "common/value/bfloat16_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cistern {
namespace {

using ::testing::ElementsAre;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

TEST(Bfloat16Cells, HoldTwoNumbersTheFirstBelow) {
  const float numbers[] = {1.0f, -2.0f, 0.5f};
  float cells[2];
  StoreBfloat16(numbers, 3, cells);
  EXPECT_EQ(std::bit_cast<uint32_t>(cells[0]), 0xC0003F80u);
  EXPECT_EQ(std::bit_cast<uint32_t>(cells[1]), 0x00003F00u);
  float read[3];
  LoadBfloat16(cells, 3, read);
  EXPECT_THAT(read, ElementsAre(1.0f, -2.0f, 0.5f));
}

// 1 + 2^-8 is halfway between two bfloat16, and goes to the even one.
TEST(Bfloat16Cells, StoreTheNearestAndKeepFiniteNumbersFinite) {
  const float numbers[] = {1 + 0x1p-8f, 1 + 0x1.8p-8f, kLargest, -kLargest, kInfinite};
  float cells[3], read[5];
  StoreBfloat16(numbers, 5, cells);
  LoadBfloat16(cells, 5, read);
  EXPECT_THAT(read, ElementsAre(1.0f, 1 + 0x1p-7f, 0x1.FEp127f, -0x1.FEp127f, kInfinite));
}

// Over all draws the mean is the number itself: the sum of 65,536 neighbours, exact in double.
TEST(RoundToBfloat16, IsRightOnAverage) {
  std::mt19937 random(1);
  std::vector<float> numbers = {0, 1, -1, 0x1p-126f, 3e-39f, -0.1f, 1e30f};
  for (int i = 0; i < 40; ++i) {
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(random() & 0xBF7FFFFFu)));
  }
  for (const float x : numbers) {
    double sum = 0;
    for (uint32_t draw = 0; draw < 0x10000; ++draw) {
      const float rounded = RoundToBfloat16(x, draw);
      ASSERT_EQ(std::bit_cast<uint32_t>(rounded) & 0xFFFFu, 0u);
      sum += static_cast<double>(rounded);
    }
    EXPECT_EQ(sum / 0x10000, static_cast<double>(x)) << x;
  }
}

TEST(RoundToBfloat16, KeepsFiniteNumbersFiniteAndOthersAsTheyAre) {
  for (const uint32_t draw : {0u, 1u, 0x8000u, 0xFFFFu}) {
    EXPECT_EQ(RoundToBfloat16(kLargest, draw), 0x1.FEp127f);
    EXPECT_EQ(RoundToBfloat16(-kLargest, draw), -0x1.FEp127f);
    EXPECT_EQ(RoundToBfloat16(kInfinite, draw), kInfinite);
    EXPECT_TRUE(std::isnan(RoundToBfloat16(std::bit_cast<float>(0x7F800001u), draw)));
    EXPECT_EQ(RoundToBfloat16(0x1.FEp127f, draw), 0x1.FEp127f);
  }
}

class RoundCellsTest : public testing::Test {
 protected:
  static constexpr uint32_t kFirst = 2, kEnd = 21;

  static std::vector<float> Rounded(Key key, uint64_t seed, uint64_t pass) {
    std::vector<float> value(24, 0.1f);
    RoundCells({kFirst, kEnd, seed, pass}, key, value.data());
    return value;
  }
};

TEST_F(RoundCellsTest, ChangesOnlyItsCells) {
  const std::vector<float> value = Rounded(1, 2, 3);
  for (uint32_t i = 0; i < value.size(); ++i) {
    const bool rounded = (std::bit_cast<uint32_t>(value[i]) & 0xFFFFu) == 0;
    EXPECT_EQ(rounded, i >= kFirst && i < kEnd) << i;
  }
}

TEST_F(RoundCellsTest, IsAFunctionOfSeedKeyPassAndPosition) {
  const std::vector<float> value = Rounded(1, 2, 3);
  EXPECT_EQ(Rounded(1, 2, 3), value);
  EXPECT_NE(Rounded(4, 2, 3), value);
  EXPECT_NE(Rounded(1, 4, 3), value);
  EXPECT_NE(Rounded(1, 2, 4), value);
  EXPECT_NE(std::vector<float>(value.begin() + 2, value.begin() + 10),
            std::vector<float>(value.begin() + 10, value.begin() + 18));
}

TEST_F(RoundCellsTest, IsTheSameForAnyNumberOfThreads) {
  std::vector<float> value(24, 0.1f);
  for (const uint32_t part : {2u, 0u, 1u}) {
    RoundCells({kFirst, kEnd, 2, 3}, 1, value.data(), part, 3);
  }
  EXPECT_EQ(value, Rounded(1, 2, 3));
}

// .1 is .8 of the way from one bfloat16 to the next: 5,700 draws give it within 4 standard errors.
TEST_F(RoundCellsTest, DrawsInProportion) {
  int up = 0, all = 0;
  for (Key key = 0; key < 300; ++key) {
    const std::vector<float> value = Rounded(key, 9, 1);
    for (uint32_t i = kFirst; i < kEnd; ++i, ++all) up += value[i] > 0.1f;
  }
  const double low = 0x1.98p-4, high = 0x1.9Ap-4;
  const double expected = (static_cast<double>(0.1f) - low) / (high - low);
  EXPECT_NEAR(static_cast<double>(up) / all, expected,
              4 * std::sqrt(expected * (1 - expected) / all));
}

}  // namespace
}  // namespace cistern
