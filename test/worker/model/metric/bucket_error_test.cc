#include "worker/model/metric/bucket_error.h"

#include <gtest/gtest.h>

namespace cistern::model {
namespace {

absl::StatusOr<double> Of(std::vector<std::pair<float, std::pair<int, int>>> shows_and_clicks) {
  RankedScores scores;
  for (const auto& [score, counts] : shows_and_clicks) {
    for (int i = 0; i < counts.first; ++i) scores.Add(i < counts.second ? 1.0f : 0.0f, score);
  }
  scores.Sort();
  return BucketError(scores);
}

// 0.5 is exactly bucket 500,000. With 401 samples sqrt(0.5 / (0.5 * 401)) < 0.05.
TEST(BucketError, IsTheRelativeErrorOfARangeWithEnoughSamples) {
  EXPECT_NEAR(*Of({{0.5f, {401, 300}}}), 300.0 / 401 / 0.5 - 1, 1e-12);
}

TEST(BucketError, IsUndefinedForTooFewSamples) {
  EXPECT_EQ(Of({{0.5f, {400, 300}}}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Of({}).ok());
  EXPECT_FALSE(Of({{0.0f, {100000, 3}}}).ok());  // a prediction of 0 has no relative error
}

TEST(BucketError, WeighsRangesBySamplesAndDoesNotMixDistantOnes) {
  // Two ranges, 25 % and 0 % off; the ten samples between them are too few for a range.
  const double error = (1000 * 0.25 + 3000 * 0.0 + 0) / 4000;
  EXPECT_NEAR(*Of({{0.5f, {1000, 625}}, {0.625f, {10, 10}}, {0.75f, {3000, 2250}}}), error, 1e-12);
}

TEST(BucketError, NearPredictionsShareARange) {
  // 350 samples are too few for a range, but two groups of 350 that are 0.004 apart share a range.
  const auto error = Of({{0.375f, {350, 200}}, {0.37890625f, {350, 200}}});
  ASSERT_TRUE(error.ok());
  EXPECT_NEAR(*error, 400.0 / 700 / 0.376953 - 1, 1e-5);
  EXPECT_FALSE(Of({{0.375f, {350, 200}}, {0.390625f, {350, 200}}}).ok());
}

}  // namespace
}  // namespace cistern::model
