#include "python/rows/gradient_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cistern {
namespace {

using testing::ElementsAre;

TEST(GradientSums, AddGradientsOfOneRowInTheirOrder) {
  GradientSums sums(2, /*counts_squares=*/true);
  const std::vector<Row> first = {7, 3}, second = {3, 0};
  const std::vector<float> one = {1, 2, 3, 4}, two = {10, 20, 5, 6};
  sums.Add(first, one.data());
  sums.Add(second, two.data());
  EXPECT_THAT(sums.rows(), ElementsAre(7, 3, 0));
  EXPECT_THAT(std::vector<float>(sums.grads(), sums.grads() + 6), ElementsAre(1, 2, 13, 24, 5, 6));
  EXPECT_EQ(sums.SquareSum(), 1.0 + 4 + 169 + 576 + 25 + 36);
}

TEST(GradientSums, BeginAnewAfterClear) {
  GradientSums sums(1, /*counts_squares=*/true);
  const std::vector<Row> rows = {4};
  const float grad = 3;
  sums.Add(rows, &grad);
  sums.Clear();
  EXPECT_EQ(sums.SquareSum(), 0);
  sums.Add(rows, &grad);
  EXPECT_THAT(sums.rows(), ElementsAre(4));
  EXPECT_EQ(sums.grads()[0], 3);
}

TEST(GradientSums, ThatCancelHaveNoNegativeSquareSum) {
  GradientSums sums(3, /*counts_squares=*/true);
  const std::vector<Row> rows = {0};
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> grads = {sign * 0.1f, sign * 1e6f, sign * 3e-3f};
    sums.Add(rows, grads.data());
  }
  EXPECT_GE(sums.SquareSum(), 0);
  EXPECT_LT(sums.SquareSum(), 1e-3);
}

TEST(GradientSums, WithAnElementThatIsNotFiniteHaveNoFiniteSquareSum) {
  GradientSums sums(1, /*counts_squares=*/true);
  const std::vector<Row> rows = {0};
  const float infinite = std::numeric_limits<float>::infinity(), one = 1;
  sums.Add(rows, &infinite);
  EXPECT_FALSE(std::isfinite(sums.SquareSum()));
  sums.Add(rows, &one);
  EXPECT_FALSE(std::isfinite(sums.SquareSum()));
}

TEST(SquareSum, CountsEveryElementAndNeitherOverflowsNorHidesWhatIsNotFinite) {
  std::vector<float> values;
  double expected = 0;
  for (int i = 0; i < 21; ++i) {
    values.push_back(static_cast<float>(i));
    expected += static_cast<double>(i) * i;
    EXPECT_EQ(SquareSum(values), expected);
  }
  EXPECT_TRUE(std::isfinite(SquareSum(std::vector<float>(9, 1e38f))));
  for (const size_t at : {size_t{2}, size_t{20}}) {
    std::vector<float> bad = values;
    bad[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(SquareSum(bad)));
    bad[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(std::isfinite(SquareSum(bad)));
  }
}

}  // namespace
}  // namespace cistern
