#include "worker/train/stream_share.h"

#include <gtest/gtest.h>

#include "worker/train/calibration.h"

namespace cistern {
namespace {

std::vector<report::ScoreBin> Pass(uint64_t samples, double positives) {
  return {{.index = 0, .samples = samples, .positives = positives, .predicted = 1}};
}

std::optional<std::string> Add(const std::vector<report::ScoreBin>& pass, StreamShare* share) {
  bool corrects = false;
  return AddToShare(pass, share, &corrects);
}

bool Corrects(const std::vector<report::ScoreBin>& pass, StreamShare* share) {
  bool corrects = false;
  AddToShare(pass, share, &corrects);
  return corrects;
}

double ShareAfter(int passes, uint64_t samples, double positives, double before) {
  StreamShare share = {before};
  for (int i = 0; i < passes; ++i) Add(Pass(samples, positives), &share);
  return share.share;
}

// The rule of files of new days: log-odds weighted by a drift of d^2 - 9/120 (numpy).
TEST(StreamShare, AnotherClickRateIsBelievedAtOnce) {
  EXPECT_NEAR(ShareAfter(1, 4000, 120, 0.1), 0.0301983100, 1e-9);
  StreamShare share = {0.1};
  EXPECT_EQ(Add(Pass(4000, 120), &share), std::nullopt);
  EXPECT_EQ(share.samples, 0);
}

// 50 clicks are expected in 500 rows.
TEST(StreamShare, SmallPassesAreAddedUp) {
  EXPECT_EQ(ShareAfter(4, 100, 2, 0.1), 0.1);
  EXPECT_LT(ShareAfter(5, 100, 4, 0.1), 0.09);
}

// The odds are halved: 1/9 becomes 1/18, which is a share of 1/19.
TEST(StreamShare, RowsOfOneClassMoveItLittle) {
  StreamShare share = {0.1};
  const std::optional<std::string> warning = Add(Pass(4000, 0), &share);
  EXPECT_DOUBLE_EQ(share.share, 1.0 / 19);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("0 of the last 4000 samples"), std::string::npos) << *warning;
  EXPECT_DOUBLE_EQ(ShareAfter(1, 4000, 4000, 0.1), 2.0 / 11);  // 2/9
  EXPECT_DOUBLE_EQ(ShareAfter(1, 4000, 4000, 0.9), 18.0 / 19);
}

TEST(StreamShare, SmallPassesOfOneClassMoveItAsFar) {
  const double whole = ShareAfter(2, 4000, 0, 0.1), cut = ShareAfter(80, 100, 0, 0.1);
  EXPECT_DOUBLE_EQ(cut, whole);
}

TEST(StreamShare, ReturnsWithTheLabels) {
  StreamShare share = {0.1};
  Add(Pass(4000, 0), &share);
  Add(Pass(4000, 400), &share);
  EXPECT_NEAR(share.share, 0.1, 0.001);
}

// Small passes of one class are not corrected until the other label comes back.
TEST(StreamShare, SmallPassesOfOneClassAreNotCorrected) {
  StreamShare share = {0.1};
  EXPECT_TRUE(Corrects(Pass(100, 10), &share));
  EXPECT_TRUE(Corrects(Pass(100, 0), &share));  // 10 of 20: chance
  for (int i = 0; i < 40; ++i) Corrects(Pass(300, 0), &share);
  EXPECT_FALSE(Corrects(Pass(300, 0), &share));
  EXPECT_LT(share.share, 1.0 / 18);
  for (int i = 0; i < 20; ++i) Corrects(Pass(300, 30), &share);
  EXPECT_TRUE(Corrects(Pass(300, 30), &share));
  EXPECT_NEAR(share.share, 0.1, 0.01);
  EXPECT_TRUE(Corrects(Pass(4000, 0), &share));  // large enough to judge alone
}

TEST(StreamShare, FollowsRowsOfOneClassThatGoOn) {
  EXPECT_LT(ShareAfter(100, 4000, 0, 0.1), 0.001);
}

}  // namespace
}  // namespace cistern
