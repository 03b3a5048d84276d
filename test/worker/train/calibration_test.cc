#include "worker/train/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cistern {
namespace {

// Twenty samples at each of 64 log-odds from -7 in steps of 1/8, of which `positives` are positive.
// weight: of each sample.
std::vector<report::ScoreBin> Samples(int positives, double weight = 1) {
  report::ScoreBins bins;
  for (int i = 0; i < 64; ++i) {
    const double margin = i / 8.0 - 7;
    const float prediction = static_cast<float>(1 / (1 + std::exp(-margin)));
    for (int k = 0; k < 20; ++k) {
      bins.Add(positives-- > 0 ? 1 : 0, prediction, margin, weight);
    }
  }
  return bins.Filled();
}

// Values of numpy: the log-odds of 160 / 1280 and of 0.11, which chance explains (0.14 apart, and
// the deviation of 160 positives is 0.08), with weights 160/260 and 100/260; and 1280/1380 of the
// shift by bisection over the 1280 samples.
TEST(Calibration, MovesTheMeanToTheShareOfBothSources) {
  EXPECT_NEAR(ExpectedShare(Samples(160), 0.11), 0.11903352877110192, 1e-12);
  EXPECT_NEAR(ShiftToShare(Samples(160), 0.11903352877110192), -0.43747379798968333, 1e-4);
}

// A day with another click rate: the difference d of the log-odds has a variance of d^2 - 9/n, and
// the share of n positives one of 1/n (numpy).
TEST(Calibration, AShareThatChanceDoesNotExplainIsBelieved) {
  EXPECT_NEAR(ExpectedShare(Samples(160), 0.02), 0.12464443579954669, 1e-12);
  EXPECT_NEAR(DriftedShare(0.5, 200, 0.25), 0.4988232023239634, 1e-12);
  EXPECT_NEAR(DriftedShare(2.0 / 1280, 2, 0.02), 0.0025602131303706067, 1e-12);
}

// A sample with weight k is k samples for the share, but not for what is known of it.
TEST(Calibration, WeightsOfOneSizeChangeNothing) {
  for (const double weight : {0.125, 8.0}) {
    EXPECT_NEAR(ExpectedShare(Samples(160, weight), 0.11), 0.11903352877110192, 1e-12) << weight;
    EXPECT_NEAR(ShiftToShare(Samples(160, weight), 0.11903352877110192), -0.43747379798968333, 1e-4)
        << weight;
  }
}

// Six samples that are predicted with 1/3 where the share is 1/2, which is log 2 away: 6/106 of it.
TEST(Calibration, AFewSamplesMoveLittle) {
  std::vector<report::ScoreBin> few(1);
  few[0].samples = 6;
  few[0].predicted = 2;
  EXPECT_NEAR(ShiftToShare(few, 0.5), std::log(2.0) * 6 / 106, 1e-6);
}

TEST(Calibration, AFewPositivesSayLittleAndManySayAll) {
  EXPECT_DOUBLE_EQ(ExpectedShare(Samples(0), 0.02), 0.02);
  EXPECT_NEAR(ExpectedShare(Samples(2), 0.003), 0.003, 0.0001);  // the samples alone: 0.0016
  std::vector<report::ScoreBin> many(1);
  many[0].samples = 1000000;
  many[0].positives = 100000;
  many[0].predicted = 50000;
  EXPECT_NEAR(ExpectedShare(many, 0.02), 0.1, 0.001);
}

TEST(Calibration, TheShiftIsBounded) {
  std::vector<report::ScoreBin> sure(1);
  sure[0].samples = 1000;
  sure[0].predicted = 999.999;
  EXPECT_NEAR(ShiftToShare(sure, 0.001), -kMaxShift * 1000 / 1100, 1e-9);
}

}  // namespace
}  // namespace cistern
