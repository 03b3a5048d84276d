#include "worker/report/score_detail.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"

namespace cistern::report {
namespace {

ScoreDetail Example() {
  ScoreCollector collector;
  collector.Add(1, 0.75f, 1.0986);
  collector.Add(0, 0.25f, -1.0986);
  collector.Add(0.5f, 0.5f, 0);
  ScoreDetail detail = collector.Detail();
  detail.iter = 70;
  detail.keys = 12;
  detail.unseen_keys = 3;
  detail.auc = 0.875;
  detail.logloss = 0.5;
  return detail;
}

TEST(ScoreCollector, SumsWhatItSees) {
  const ScoreDetail detail = Example();
  EXPECT_EQ(detail.samples, 3u);
  EXPECT_EQ(detail.positives, 1.5);
  EXPECT_EQ(detail.predicted, 1.5);
  EXPECT_EQ(detail.other_labels, 1u);
  EXPECT_EQ(detail.lowest, 0.25);
  EXPECT_EQ(detail.highest, 0.75);
  EXPECT_EQ(ScoreCollector().Detail().samples, 0u);
}

TEST(ScoreDetail, ReadsBackWhatWasWritten) {
  const ScoreDetail detail = Example();
  const auto back = ParseScoreDetail(FormatScoreDetail(detail));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(FormatScoreDetail(*back), FormatScoreDetail(detail));
  EXPECT_EQ(back->bins, detail.bins);
  EXPECT_EQ(back->iter, 70u);
  EXPECT_EQ(back->auc, 0.875);
}

TEST(ScoreDetail, RefusesDamage) {
  const std::string text = FormatScoreDetail(Example());
  EXPECT_FALSE(ParseScoreDetail("").ok());
  EXPECT_FALSE(ParseScoreDetail("[1]").ok());
  EXPECT_FALSE(
      ParseScoreDetail(absl::StrReplaceAll(text, {{"\"format\":1", "\"format\":2"}})).ok());
  const size_t bins = text.find("\"bins\":[[") + 9;
  for (const std::string bad : {"99999,", "\"x\",", "-1e9,"}) {
    std::string damaged = text;
    damaged.replace(bins, damaged.find(',', bins) + 1 - bins, bad);
    EXPECT_FALSE(ParseScoreDetail(damaged).ok()) << damaged;
  }
}

}  // namespace
}  // namespace cistern::report
