#include "server/table/hot_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cistern::server {
namespace {

TEST(Score, IsTheLogarithmOfTheFadedNumberOfPasses) {
  // Passes 3, 4 and 9 had the row; at pass 9 they count .95^6, .95^5 and 1.
  float score = ScoreOfPass(3);
  for (const uint64_t pass : {4, 9}) score = AddPass(score, ScoreOfPass(pass));
  const double count = std::pow(.95, 6) + std::pow(.95, 5) + 1;
  EXPECT_NEAR(std::exp2(score - ScoreOfPass(9)), count, 1e-5);
}

TEST(Score, StaysAccurateAfterAMillionPasses) {
  float score = ScoreOfPass(1000000);
  score = AddPass(score, ScoreOfPass(1000001));
  EXPECT_NEAR(std::exp2(score - ScoreOfPass(1000001)), 1.95, .02);
}

TEST(ScoreCut, KeepsTheBestRowsThatFit) {
  const float now = ScoreOfPass(100);
  std::mt19937_64 random(3);
  std::map<Key, float> rows;
  ScoreHistogram scores(now);
  for (Key key = 0; key < 20000; ++key) {
    rows[key] = now - static_cast<float>(random() % 1000) / 100;
    scores.Add(rows[key], 50);
  }
  EXPECT_EQ(scores.total(), 1000000u);
  const ScoreCut cut(scores, 300000);
  uint64_t kept = 0;
  float worst_kept = now, best_gone = now - 100;
  for (const auto& [key, score] : rows) {
    kept += cut.Keeps(score, key) ? 50 : 0;
    (cut.Keeps(score, key) ? worst_kept : best_gone) =
        cut.Keeps(score, key) ? std::min(worst_kept, score) : std::max(best_gone, score);
  }
  EXPECT_LE(kept, 303000u);
  EXPECT_GE(kept, 297000u);
  EXPECT_LE(best_gone - worst_kept, 1.0f / 64 + 1e-4);  // at most within a bin
}

TEST(ScoreCut, DividesRowsOfEqualScoresByTheirKeys) {
  const float now = ScoreOfPass(5);
  ScoreHistogram scores(now);
  for (Key key = 0; key < 100000; ++key) scores.Add(now, 10);
  const ScoreCut cut(scores, 250000);
  size_t kept = 0;
  for (Key key = 0; key < 100000; ++key) kept += cut.Keeps(now, key);
  EXPECT_NEAR(static_cast<double>(kept), 25000, 600);
  const ScoreCut none(scores, 0);
  EXPECT_FALSE(none.Keeps(now, 1));
  const ScoreCut all(scores, 1000000);
  EXPECT_TRUE(all.keeps_all());
}

}  // namespace
}  // namespace cistern::server
