#include "worker/metric/log_loss.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cistern {
namespace {

// sklearn.metrics.log_loss([1, 0, 0, 1], [.9, .1, .2, .65]) == 0.21616187468057912
TEST(LogLoss, EqualsScikitLearnOnItsOwnExample) {
  LogLoss loss;
  loss.Add(1, 0.9f);
  loss.Add(0, 0.1f);
  LogLoss rest;
  rest.Add(0, 0.2f);
  rest.Add(1, 0.65f);
  loss.Merge(rest);
  EXPECT_NEAR(loss.Value(), 0.21616187468057912, 1e-7);
}

TEST(LogLoss, CertainAndWrongIsClipped) {
  LogLoss loss;
  loss.Add(1, 0);
  EXPECT_NEAR(loss.Value(), -std::log(1e-7), 1e-9);
}

TEST(LogLoss, NoSamplesAreZero) {
  EXPECT_EQ(LogLoss().Value(), 0.0);
}

}  // namespace
}  // namespace cistern
