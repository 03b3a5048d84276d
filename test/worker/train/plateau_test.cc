#include "worker/train/plateau.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

Plateau::Rule PublishedRule() {
  Plateau::Rule rule;
  rule.factor = 0.1;
  rule.min_scale = 1e-3;
  rule.patience = 2;
  return rule;
}

TEST(Plateau, FirstEpochIsTheBest) {
  Plateau plateau(PublishedRule());
  EXPECT_TRUE(plateau.Observe(-3.0));
  EXPECT_EQ(plateau.scale(), 1.0);
}

TEST(Plateau, NoGainLowersTheLearningRateAndTwoInARowStopTraining) {
  Plateau plateau(PublishedRule());
  EXPECT_TRUE(plateau.Observe(0.80));
  EXPECT_FALSE(plateau.Observe(0.79));
  EXPECT_DOUBLE_EQ(plateau.scale(), 0.1);
  EXPECT_FALSE(plateau.should_stop());
  EXPECT_FALSE(plateau.Observe(0.80));  // an equal value is not a gain
  EXPECT_DOUBLE_EQ(plateau.scale(), 0.01);
  EXPECT_TRUE(plateau.should_stop());
  EXPECT_EQ(plateau.best(), 0.80);
}

TEST(Plateau, AGainResetsTheCountAndKeepsTheLoweredRate) {
  Plateau plateau(PublishedRule());
  plateau.Observe(0.80);
  plateau.Observe(0.79);
  EXPECT_TRUE(plateau.Observe(0.81));
  EXPECT_FALSE(plateau.Observe(0.805));
  EXPECT_FALSE(plateau.should_stop());
  EXPECT_DOUBLE_EQ(plateau.scale(), 0.01);
}

TEST(Plateau, ScaleStopsAtItsFloor) {
  Plateau plateau(PublishedRule());
  plateau.Observe(1.0);
  for (int i = 0; i < 9; ++i) plateau.Observe(0.0);
  EXPECT_DOUBLE_EQ(plateau.scale(), 1e-3);
}

TEST(Plateau, WithoutPatienceItNeverStops) {
  Plateau plateau(Plateau::Rule{});
  plateau.Observe(1.0);
  for (int i = 0; i < 9; ++i) plateau.Observe(0.0);
  EXPECT_FALSE(plateau.should_stop());
  EXPECT_EQ(plateau.scale(), 1.0);
}

}  // namespace
}  // namespace cistern
