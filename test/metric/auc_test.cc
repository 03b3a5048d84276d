#include "worker/metric/auc.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace cistern {
namespace {

// The definition: over all (positive, negative) pairs, 1 if in order, 1/2 if tied.
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
  Auc auc;
  auc.Add(labels, scores);
  ASSERT_TRUE(auc.Value().ok());
  EXPECT_NEAR(*auc.Value(), PairwiseAuc(labels, scores), 1e-12);
}

// sklearn.metrics.roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) == 0.75
TEST(Auc, EqualsScikitLearnOnItsOwnExample) {
  Auc auc;
  auc.Add({0.0f, 0.0f, 1.0f, 1.0f}, {0.1f, 0.4f, 0.35f, 0.8f});
  EXPECT_DOUBLE_EQ(*auc.Value(), 0.75);
}

TEST(Auc, ConstantScoresAreOneHalf) {
  Auc auc;
  auc.Add({0.0f, 1.0f, 1.0f}, {0.5f, 0.5f, 0.5f});
  EXPECT_DOUBLE_EQ(*auc.Value(), 0.5);
}

TEST(Auc, NegativeAndPositiveZeroTie) {
  Auc auc;
  auc.Add({0.0f, 1.0f}, {0.0f, -0.0f});
  EXPECT_DOUBLE_EQ(*auc.Value(), 0.5);
}

TEST(Auc, OneClassIsSaidAndNotGivenANumber) {
  Auc auc;
  auc.Add({1.0f, 1.0f}, {0.2f, 0.9f});
  EXPECT_EQ(auc.Value().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(auc.Value().status().message().find("all 2 labels are positive"),
            absl::string_view::npos);
}

TEST(Auc, NanIsRefused) {
  Auc auc;
  auc.Add({1.0f, 0.0f}, {0.2f, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(auc.Value().status().code(), absl::StatusCode::kDataLoss);
}

TEST(Auc, MergedPartsEqualTheWhole) {
  Auc left, right, whole;
  left.Add({0.0f, 1.0f}, {0.3f, 0.2f});
  right.Add({1.0f, 0.0f}, {0.3f, 0.1f});
  whole.Add({0.0f, 1.0f, 1.0f, 0.0f}, {0.3f, 0.2f, 0.3f, 0.1f});
  left.Merge(right);
  EXPECT_DOUBLE_EQ(*left.Value(), *whole.Value());
}

}  // namespace
}  // namespace cistern
