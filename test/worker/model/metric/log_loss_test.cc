#include "worker/model/metric/log_loss.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cistern::model {
namespace {

// sklearn.metrics.log_loss([1, 0, 0, 1], [.9, .1, .2, .65]) == 0.21616187468057912
TEST(LogLoss, EqualsScikitLearnOnItsOwnExample) {
  LogLoss loss;
  loss.Add(ClippedCrossEntropy(1, 0.9f));
  loss.Add(ClippedCrossEntropy(0, 0.1f));
  LogLoss rest;
  rest.Add(ClippedCrossEntropy(0, 0.2f));
  rest.Add(ClippedCrossEntropy(1, 0.65f));
  loss.Merge(rest);
  EXPECT_NEAR(loss.Value(), 0.21616187468057912, 1e-7);
}

TEST(LogLoss, ClipsACertainWrongPrediction) {
  LogLoss loss;
  loss.Add(ClippedCrossEntropy(1, 0));
  EXPECT_NEAR(loss.Value(), -std::log(1e-7), 1e-9);
}

// numpy: np.logaddexp(0, x) - x * label.
TEST(LogLoss, OfMarginsIsExactAndUnbounded) {
  EXPECT_EQ(CrossEntropyOfMargin(0, 40), 40.0 + std::exp(-40.0));
  EXPECT_EQ(CrossEntropyOfMargin(1, -40), 40.0 + std::exp(-40.0));
  EXPECT_NEAR(CrossEntropyOfMargin(1, 40), 4.248354255291589e-18, 1e-30);
  EXPECT_NEAR(CrossEntropyOfMargin(0, -40), 4.248354255291589e-18, 1e-30);
  EXPECT_NEAR(CrossEntropyOfMargin(1, 2), 0.1269280110429725, 1e-16);
  EXPECT_EQ(CrossEntropyOfMargin(0, 1e30), 1e30);
}

TEST(LogLoss, ClippedLossOfMarginsEqualsThatOfPredictions) {
  for (const double label : {0.0, 0.25, 1.0}) {
    for (const double margin : {-800.0, -40.0, -16.2, -16.1, -3.0, 0.0, 5.0, 16.1, 40.0, 800.0}) {
      EXPECT_NEAR(ClippedCrossEntropyOfMargin(label, margin),
                  ClippedCrossEntropy(label, 1 / (1 + std::exp(-margin))), 1e-8)
          << label << " " << margin;
    }
  }
}

TEST(LogLoss, IsZeroWithoutSamples) {
  EXPECT_EQ(LogLoss().Value(), 0.0);
}

}  // namespace
}  // namespace cistern::model
