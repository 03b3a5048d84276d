#include "worker/train/monitored_value.h"

#include <gtest/gtest.h>

#include "common/base/cross_entropy.h"

namespace cistern {
namespace {

constexpr bool kAuc = false, kLogLoss = true;

TEST(MonitoredValue, PrefersTheHigherAuc) {
  const double entropy = EntropyOf(0.01);
  EXPECT_GT(MonitoredValue(0.72, 0.05, entropy, kAuc), MonitoredValue(0.71, 0.045, entropy, kAuc));
}

TEST(MonitoredValue, PrefersTheLowerLogLossIfAsked) {
  const double entropy = EntropyOf(0.01);
  EXPECT_LT(MonitoredValue(0.72, 0.05, entropy, kLogLoss),
            MonitoredValue(0.71, 0.045, entropy, kLogLoss));
}

// An AUC of 0.81 with a log loss of 1.97, where a constant has 0.69, is not the best epoch.
TEST(MonitoredValue, IsLowestWhereAConstantPredictsBetter) {
  const double entropy = EntropyOf(0.5);
  EXPECT_NEAR(entropy, 0.693147, 1e-6);
  EXPECT_LT(MonitoredValue(0.81, 1.97, entropy, kAuc), MonitoredValue(0.55, 0.68, entropy, kAuc));
  EXPECT_LT(MonitoredValue(0.60, 0.95, entropy, kAuc), MonitoredValue(0.61, 0.95, entropy, kAuc));
}

TEST(MonitoredValue, IsTheLogLossOfLabelsOfOneClass) {
  EXPECT_EQ(MonitoredValue(std::nullopt, 0.2, 0, kAuc), -0.2);
}

}  // namespace
}  // namespace cistern
