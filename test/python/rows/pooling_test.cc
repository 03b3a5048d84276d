#include "python/rows/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace cistern {
namespace {

using testing::ElementsAre;

// Three outputs: rows 0 and 1 and 0 again; nothing; row 1.
const std::vector<uint32_t> kPlaces = {0, 1, 0, 1}, kOffsets = {0, 3, 3, 4};
const std::vector<float> kRows = {1, 2, 10, 20};
constexpr uint32_t kDim = 2;

TEST(PoolRows, SumsByOutput) {
  std::vector<float> out(6, 99);
  PoolRows({kPlaces, kOffsets}, false, kDim, kRows.data(), out.data());
  EXPECT_THAT(out, ElementsAre(12, 24, 0, 0, 10, 20));
}

TEST(PoolRows, DividesByTheNumberOfRows) {
  std::vector<float> out(6, 99);
  PoolRows({kPlaces, kOffsets}, true, kDim, kRows.data(), out.data());
  EXPECT_THAT(out, ElementsAre(4, 8, 0, 0, 10, 20));
}

TEST(PoolRowsBackward, SumsByRow) {
  const std::vector<float> out_grads = {3, 6, 7, 8, 1, 2};
  std::vector<float> grads(4, 99);
  PoolRowsBackward({kPlaces, kOffsets}, false, kDim, out_grads.data(), 2, grads.data());
  EXPECT_THAT(grads, ElementsAre(6, 12, 4, 8));
  PoolRowsBackward({kPlaces, kOffsets}, true, kDim, out_grads.data(), 2, grads.data());
  EXPECT_THAT(grads, ElementsAre(2, 4, 2, 4));
}

// By hand: 0.5 * row 0 - row 1 + 2 * row 0; nothing; 0.25 * row 1.
TEST(PoolRows, MultipliesEachOccurrenceByItsFactor) {
  const std::vector<float> factors = {0.5f, -1, 2, 0.25f};
  std::vector<float> out(6, 99), grads(4, 99);
  PoolRows({kPlaces, kOffsets, factors}, false, kDim, kRows.data(), out.data());
  EXPECT_THAT(out, ElementsAre(-7.5f, -15, 0, 0, 2.5f, 5));
  const std::vector<float> out_grads = {3, 6, 7, 8, 1, 2};
  PoolRowsBackward({kPlaces, kOffsets, factors}, false, kDim, out_grads.data(), 2, grads.data());
  EXPECT_THAT(grads, ElementsAre(7.5f, 15, -2.75f, -5.5f));
}

TEST(PoolRowsBackward, RowsWithoutOccurrencesGetZero) {
  std::vector<float> grads(4, 99);
  PoolRowsBackward({{}, {{0, 0}}}, false, kDim, kRows.data(), 2, grads.data());
  EXPECT_THAT(grads, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace cistern
