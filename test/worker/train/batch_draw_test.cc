#include "worker/train/batch_draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cistern {
namespace {

std::vector<size_t> Drawn(const std::vector<uint64_t>& sizes, uint64_t most, uint64_t draw) {
  const std::vector<bool> is_drawn = DrawBatches(sizes, most, draw);
  EXPECT_EQ(is_drawn.size(), sizes.size());
  std::vector<size_t> drawn;
  for (size_t i = 0; i < is_drawn.size(); ++i) {
    if (is_drawn[i]) drawn.push_back(i);
  }
  return drawn;
}

TEST(BatchDraw, TakesAllOfSmallPasses) {
  const std::vector<uint64_t> sizes = {100, 100, 7};
  for (const uint64_t most : {0, 207, 1000}) EXPECT_EQ(Drawn(sizes, most, 5).size(), 3u) << most;
  EXPECT_EQ(Drawn(sizes, 206, 5).size(), 2u);
  EXPECT_TRUE(DrawBatches({}, 10, 5).empty());
}

TEST(BatchDraw, TheLastBatchesAreOneAtLeast) {
  EXPECT_EQ(FirstOfLast({}, 10), 0u);
  EXPECT_EQ(FirstOfLast({7}, 3), 0u);
  EXPECT_EQ(FirstOfLast({7, 7}, 3), 1u);
  const std::vector<uint64_t> sizes = {100, 100, 100, 7};
  EXPECT_EQ(FirstOfLast(sizes, 7), 3u);
  EXPECT_EQ(FirstOfLast(sizes, 106), 3u);
  EXPECT_EQ(FirstOfLast(sizes, 107), 2u);
  EXPECT_EQ(FirstOfLast(sizes, 306), 1u);
  EXPECT_EQ(FirstOfLast(sizes, 307), 0u);
}

TEST(BatchDraw, DrawsAsManyAsFitSpreadOverThePass) {
  for (uint64_t count = 1; count < 40; ++count) {
    std::vector<uint64_t> sizes(count, 50);
    sizes.back() = 1;  // the last batch of a slice is short
    for (uint64_t most = 1; most < 50 * (count - 1) + 1; most += 37) {
      for (uint64_t draw = 0; draw < 5; ++draw) {
        const std::vector<size_t> drawn = Drawn(sizes, most, draw);
        const uint64_t expected = std::max<uint64_t>(most / 50, 1);
        ASSERT_EQ(drawn.size(), expected) << count << " " << most;
        for (size_t i = 1; i < drawn.size(); ++i) {
          const uint64_t gap = drawn[i] - drawn[i - 1];
          EXPECT_GE(gap, count / expected);
          EXPECT_LE(gap, count / expected + 1);
        }
      }
    }
  }
}

TEST(BatchDraw, IsAsLikelyForEveryBatch) {
  const std::vector<uint64_t> sizes(20, 50);
  std::vector<int> times(20);
  constexpr int kDraws = 20000, kDrawn = 3;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (const size_t i : Drawn(sizes, 50 * kDrawn, 31000 * static_cast<uint64_t>(draw))) {
      ++times[i];
    }
  }
  // Each has the chance .15: 3000 times, with a deviation of 50.
  for (const int count : times) EXPECT_NEAR(count, kDraws * kDrawn / 20, 250);
}

}  // namespace
}  // namespace cistern
