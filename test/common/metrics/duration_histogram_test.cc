#include "common/metrics/duration_histogram.h"

#include <gtest/gtest.h>

#include "common/base/thread_pool.h"

namespace cistern {
namespace {

constexpr double kBounds[] = {0.001, 0.01, 1};

TEST(DurationHistogram, CountsEachDurationUnderTheFirstBoundThatIsNotBelowIt) {
  DurationHistogram histogram(kBounds);
  for (const double ms : {0.5, 1.0, 1.001, 10.0, 999.0, 1001.0}) {
    histogram.Add(absl::Milliseconds(ms));
  }
  const DurationHistogram::Reading reading = histogram.Read();
  EXPECT_EQ(reading.up_to[0], 2u);
  EXPECT_EQ(reading.up_to[1], 4u);
  EXPECT_EQ(reading.up_to[2], 5u);
  EXPECT_EQ(reading.count(), 6u);
  EXPECT_NEAR(reading.sum_seconds, 2.012501, 1e-9);
}

TEST(DurationHistogram, CountsAnEndlessAndANegativeDuration) {
  DurationHistogram histogram(kBounds);
  histogram.Add(absl::Seconds(-3));
  histogram.Add(absl::Hours(24 * 365));
  const DurationHistogram::Reading reading = histogram.Read();
  EXPECT_EQ(reading.up_to[0], 1u);
  EXPECT_EQ(reading.count(), 2u);
  EXPECT_NEAR(reading.sum_seconds, 365 * 86400.0, 1e-3);
}

TEST(DurationHistogram, LosesNothingThatThreadsAdd) {
  constexpr size_t kThreads = 4, kAdds = 20000;
  DurationHistogram histogram(kBounds);
  ThreadPool pool(kThreads);
  pool.ParallelFor(kThreads, [&histogram](size_t thread) {
    for (size_t i = 0; i < kAdds; ++i) histogram.Add(absl::Milliseconds(thread == 0 ? 5 : 0.5));
  });
  const DurationHistogram::Reading reading = histogram.Read();
  EXPECT_EQ(reading.up_to[0], (kThreads - 1) * kAdds);
  EXPECT_EQ(reading.count(), kThreads * kAdds);
  EXPECT_NEAR(reading.sum_seconds, kAdds * 0.005 + (kThreads - 1) * kAdds * 0.0005, 1e-6);
}

}  // namespace
}  // namespace cistern
