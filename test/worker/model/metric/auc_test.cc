#include "worker/model/metric/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cistern::model {
namespace {

absl::StatusOr<double> AucOf(const std::vector<float>& labels, const std::vector<float>& scores) {
  RankedScores ranked;
  for (size_t i = 0; i < labels.size(); ++i) ranked.Add(labels[i], scores[i]);
  ranked.Sort();
  return Auc(ranked);
}

// The definition: the mean over all (positive, negative) pairs of 1 if in order, 1/2 if tied.
double PairwiseAuc(const std::vector<float>& labels, const std::vector<float>& scores) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t j = 0; j < labels.size(); ++j) {
      if (labels[i] < 0.5f || labels[j] > 0.5f) continue;
      sum += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
      pairs += 1;
    }
  }
  return sum / pairs;
}

TEST(Auc, EqualsThePairwiseDefinitionWithManyTies) {
  std::mt19937 random(7);
  std::vector<float> labels(700), scores(700);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<float>(random() % 3 == 0);
    scores[i] = static_cast<float>(random() % 20) / 20.0f - 0.3f;
  }
  ASSERT_TRUE(AucOf(labels, scores).ok());
  EXPECT_NEAR(*AucOf(labels, scores), PairwiseAuc(labels, scores), 1e-12);
}

// sklearn.metrics.roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) == 0.75
TEST(Auc, EqualsScikitLearnOnItsOwnExample) {
  EXPECT_DOUBLE_EQ(*AucOf({0, 0, 1, 1}, {0.1f, 0.4f, 0.35f, 0.8f}), 0.75);
}

// The example of Hanley and McNeil (1982): 51 abnormal and 58 normal images, area .893 +- .032.
TEST(Auc, StandardErrorIsThatOfItsPaper) {
  EXPECT_NEAR(AucStandardError(0.893, 51, 58), 0.032, 0.0006);
  EXPECT_EQ(AucStandardError(1, 10, 10), 0);
}

// The deviation of areas of samples that are drawn anew. Scores of both classes are exponential, as
// the estimate assumes: P(positive > negative) is 3 / 4 if their means are 3 and 1.
TEST(Auc, StandardErrorIsTheDeviationOfRepeatedDraws) {
  std::mt19937 random(11);
  std::exponential_distribution<float> positive(1.0f / 3), negative(1);
  constexpr int kTrials = 2000, kPositives = 40, kNegatives = 400;
  double sum = 0, squares = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<float> labels, scores;
    for (int i = 0; i < kPositives + kNegatives; ++i) {
      labels.push_back(i < kPositives ? 1 : 0);
      scores.push_back(i < kPositives ? positive(random) : negative(random));
    }
    const double area = *AucOf(labels, scores);
    sum += area;
    squares += area * area;
  }
  const double mean = sum / kTrials, deviation = std::sqrt(squares / kTrials - mean * mean);
  EXPECT_NEAR(mean, 0.75, 0.005);
  EXPECT_NEAR(AucStandardError(0.75, kPositives, kNegatives) / deviation, 1, 0.08);
}

TEST(Auc, ConstantScoresGiveOneHalf) {
  EXPECT_DOUBLE_EQ(*AucOf({0, 1, 1}, {0.5f, 0.5f, 0.5f}), 0.5);
}

TEST(Auc, NegativeAndPositiveZeroTie) {
  EXPECT_DOUBLE_EQ(*AucOf({0, 1}, {0.0f, -0.0f}), 0.5);
}

TEST(Auc, OneClassIsAnError) {
  EXPECT_EQ(AucOf({1, 1}, {0.2f, 0.9f}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(AucOf({1, 1}, {0.2f, 0.9f}).status().message().find("all 2 labels are positive"),
            absl::string_view::npos);
  EXPECT_FALSE(AucOf({}, {}).ok());
}

TEST(Auc, MergedPartsEqualTheWhole) {
  RankedScores left, right;
  left.Add(0, 0.3f);
  left.Add(1, 0.2f);
  left.Sort();
  right.Add(1, 0.3f);
  right.Add(0, 0.1f);
  left.Merge(right);
  left.Sort();
  EXPECT_DOUBLE_EQ(*Auc(left), *AucOf({0, 1, 1, 0}, {0.3f, 0.2f, 0.3f, 0.1f}));
}

}  // namespace
}  // namespace cistern::model
