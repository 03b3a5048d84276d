#include "worker/report/score_bins.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cistern::report {
namespace {

double LogOdds(double p) {
  return std::log(p / (1 - p));
}

TEST(ScoreBins, CountSamplesByLogOdds) {
  ScoreBins bins;
  bins.Add(1, 0.5f, 0.0);
  bins.Add(0, 0.5f, 0.01);
  bins.Add(0, 0.49f, -0.01);
  const std::vector<ScoreBin> filled = bins.Filled();
  ASSERT_EQ(filled.size(), 2u);
  EXPECT_EQ(filled[0].index, -1);
  EXPECT_EQ(filled[1].index, 0);
  EXPECT_EQ(filled[1].samples, 2u);
  EXPECT_EQ(filled[1].positives, 1);
  EXPECT_EQ(filled[1].predicted, 1);
}

TEST(ScoreBins, TheOutermostBinsTakeTheRest) {
  ScoreBins bins;
  bins.Add(0, 0, -1e30);
  bins.Add(1, 1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(bins.Filled().front().index, -kBinsEachSide);
  EXPECT_EQ(bins.Filled().back().index, kBinsEachSide - 1);
}

TEST(CutByScore, PartsAreAboutEqualAndLoseNothing) {
  ScoreBins bins;
  std::mt19937 random(1);
  std::normal_distribution<double> margins(-1, 2);
  double positives = 0;
  for (int i = 0; i < 20000; ++i) {
    const double margin = margins(random);
    const float label = random() % 3 == 0 ? 1.0f : 0.0f;
    positives += label;
    bins.Add(label, static_cast<float>(1 / (1 + std::exp(-margin))), margin);
  }
  const std::vector<ScorePart> parts = CutByScore(bins.Filled(), 10);
  ASSERT_EQ(parts.size(), 10u);
  uint64_t samples = 0;
  double found = 0;
  for (const ScorePart& part : parts) {
    EXPECT_NEAR(static_cast<double>(part.sum.samples), 2000, 200);
    EXPECT_LE(part.sum.index, part.last);
    samples += part.sum.samples;
    found += part.sum.positives;
  }
  EXPECT_EQ(samples, 20000u);
  EXPECT_DOUBLE_EQ(found, positives);
}

TEST(CutByScore, EqualPredictionsMakeOnePart) {
  ScoreBins bins;
  for (int i = 0; i < 100; ++i) bins.Add(0, 0.25f, LogOdds(0.25));
  EXPECT_EQ(CutByScore(bins.Filled(), 10).size(), 1u);
  EXPECT_TRUE(CutByScore({}, 10).empty());
}

TEST(AucOfBins, AgreesWithCountedPairs) {
  // Scores -1: 1 of 2 positive; 0: 1 of 1; 1: 2 of 3. Pairs: negatives 2 (one per outer bin).
  const std::vector<ScoreBin> bins = {{-1, 2, 1, 0}, {0, 1, 1, 0}, {1, 3, 2, 0}};
  // By hand: of 4 x 2 pairs: positive at -1 ties 1, loses 1: 0.5; at 0 wins 1, loses 1: 1; two at 1
  // win 1 and tie 1 each: 3. Together 4.5 / 8.
  EXPECT_DOUBLE_EQ(*AucOfBins(bins), 4.5 / 8);
  EXPECT_EQ(AucOfBins({{0, 5, 5, 2}}), std::nullopt);
}

}  // namespace
}  // namespace cistern::report
