#include "worker/model/metric/ndcg.h"

#include <gmock/gmock.h>

#include <cmath>

namespace cistern::model {
namespace {

struct RankedSample {
  float label, score, weight = 1;
};

RankedScores Ranked(const std::vector<RankedSample>& samples) {
  RankedScores scores;
  for (const RankedSample& one : samples) scores.Add(one.label, one.score, one.weight);
  scores.Sort();
  return scores;
}

// The sum of the discounts of the first ranks, one by one.
double SumOfDiscounts(size_t ranks) {
  double sum = 0;
  for (size_t rank = 1; rank <= ranks; ++rank) {
    sum += 1 / std::log2(static_cast<double>(rank) + 1);
  }
  return sum;
}

TEST(Ndcg, IsTheGainOfTheRankingByThatOfTheBest) {
  // Positives at ranks 1 and 3, instead of 1 and 2.
  const double expected = (1 + 1 / std::log2(4.0)) / (1 + 1 / std::log2(3.0));
  EXPECT_NEAR(*Ndcg(Ranked({{1, 0.9f}, {0, 0.8f}, {1, 0.7f}, {0, 0.1f}})), expected, 1e-15);
  EXPECT_EQ(*Ndcg(Ranked({{1, 0.9f}, {1, 0.8f}, {0, 0.7f}})), 1);
  EXPECT_EQ(*Ndcg(Ranked({{1, 0.5f}})), 1);
}

TEST(Ndcg, TiesShareTheirDiscounts) {
  const double shared = (1 + 1 / std::log2(3.0)) / 2;
  EXPECT_NEAR(*Ndcg(Ranked({{1, 0.5f}, {0, 0.5f}})), shared, 1e-15);
  EXPECT_NEAR(*Ndcg(Ranked({{0, 0.5f}, {1, 0.5f}})), shared, 1e-15);
}

TEST(Ndcg, AFractionOfASampleTakesThatShareOfARank) {
  // Half of rank 1 is the negative's; the positive has its other half and half of rank 2.
  const double gain = 0.5 + 0.5 / std::log2(3.0);
  EXPECT_NEAR(*Ndcg(Ranked({{0, 0.9f, 0.5f}, {1, 0.5f}})), gain, 1e-15);
}

// Beyond the ranks whose discounts are in a table, their sum is an integral with corrections.
TEST(Ndcg, SumsOfManyDiscountsAreExact) {
  for (const size_t samples : {1022, 1023, 1024, 1025, 3000, 400000}) {
    const size_t positives = samples / 3;
    std::vector<RankedSample> tied(samples, {0, 0.25f});
    for (size_t i = 0; i < positives; ++i) tied[i].label = 1;
    const double share = static_cast<double>(positives) / static_cast<double>(samples);
    EXPECT_NEAR(*Ndcg(Ranked(tied)), share * SumOfDiscounts(samples) / SumOfDiscounts(positives),
                1e-12)
        << samples;
  }
}

TEST(Ndcg, NeedsAPositiveSample) {
  EXPECT_EQ(Ndcg(Ranked({{0, 0.5f}})).status().message(),
            "NDCG is undefined: no label is positive");
  EXPECT_FALSE(Ndcg(Ranked({})).ok());
}

TEST(HitRate, IsTheShareOfPositivesAboveTheThreshold) {
  EXPECT_EQ(*HitRate(Ranked({{1, 0.9f}, {0, 0.85f}, {1, 0.95f}, {1, 0.99f}, {1, 0.5f}})), 0.75);
  EXPECT_EQ(*HitRate(Ranked({{1, 0.9f, 3}, {0, 0.85f}, {1, 0.1f}})), 0.75);
  EXPECT_EQ(*HitRate(Ranked({{1, 0.8f}})), 1);  // the float is above 0.8
  EXPECT_EQ(HitRate(Ranked({{1, 0.79f}, {0, 0.1f}})).status().message(),
            "HitRate is undefined: no prediction is above 0.8");
}

}  // namespace
}  // namespace cistern::model
