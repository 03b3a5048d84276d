#include "app/table/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cistern::app {
namespace {

TEST(Histogram, IsZeroIfEmpty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_TRUE(histogram.Buckets().empty());
}

TEST(Histogram, CountsBetweenPowersOfTwo) {
  Histogram histogram;
  for (const double x : {-3.0, -2.0, 0.0, 0.0, 0.25, 1.0, 1.99, 2.0, 3.0, 1e30}) histogram.Add(x);
  struct Expected {
    double low, high;
    uint64_t count;
  };
  const Expected expected[] = {{-4, -2, 2}, {0, 0, 2}, {0.25, 0.5, 1},
                               {1, 2, 2},   {2, 4, 2}, {std::exp2(99), std::exp2(100), 1}};
  const auto buckets = histogram.Buckets();
  ASSERT_EQ(buckets.size(), std::size(expected));
  for (size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_EQ(buckets[i].low, expected[i].low) << i;
    EXPECT_EQ(buckets[i].high, expected[i].high) << i;
    EXPECT_EQ(buckets[i].count, expected[i].count) << i;
  }
  EXPECT_EQ(histogram.min(), -3);
  EXPECT_EQ(histogram.max(), 1e30);
}

TEST(Histogram, QuantilesAreWithinOne64th) {
  Histogram histogram;
  for (int i = 1; i <= 100000; ++i) histogram.Add(i * 0.37);
  EXPECT_NEAR(histogram.mean(), 0.37 * 50000.5, 1e-6);
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.999}) {
    const double exact = 0.37 * (1 + q * 99999);
    EXPECT_NEAR(histogram.Quantile(q), exact, exact / 64) << q;
  }
  EXPECT_EQ(histogram.Quantile(0), histogram.min());
}

TEST(Histogram, CountsNanSeparately) {
  Histogram histogram;
  histogram.Add(std::numeric_limits<double>::quiet_NaN());
  histogram.Add(5);
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_EQ(histogram.nan_count(), 1u);
  EXPECT_EQ(histogram.mean(), 5);
}

}  // namespace
}  // namespace cistern::app
