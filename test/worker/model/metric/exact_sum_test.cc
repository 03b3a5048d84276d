#include "worker/model/metric/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cistern::model {
namespace {

TEST(ExactSum, DoesNotDependOnOrderOrParts) {
  std::mt19937_64 random(3);
  std::vector<double> numbers(5000);
  for (double& x : numbers) {
    x = std::ldexp(static_cast<double>(random() >> 11), -40 - static_cast<int>(random() % 40)) - 1;
  }
  ExactSum forward, left, right;
  for (double x : numbers) forward.Add(x);
  std::shuffle(numbers.begin(), numbers.end(), random);
  for (size_t i = 0; i < numbers.size(); ++i) (i % 3 == 0 ? left : right).Add(numbers[i]);
  right.Merge(left);
  EXPECT_EQ(forward.Value(), right.Value());
}

TEST(ExactSum, KeepsDigitsThatASumOfDoublesLoses) {
  ExactSum sum;
  sum.Add(1e9);
  for (int i = 0; i < 1000; ++i) sum.Add(1e-10);
  sum.Add(-1e9);
  EXPECT_NEAR(sum.Value(), 1e-7, 1e-16);
}

TEST(ExactSum, ClampsInfinityToTheLargestNumber) {
  ExactSum sum;
  sum.Add(HUGE_VAL);
  EXPECT_EQ(sum.Value(), 0x1p40);
}

}  // namespace
}  // namespace cistern::model
