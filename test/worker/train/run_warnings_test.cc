#include "worker/train/run_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/cross_entropy.h"
#include "worker/report/score_detail.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Progress Event(report::RunEvent event, uint64_t iter) {
  Progress progress;
  progress.event = event;
  progress.iter = iter;
  progress.lr = 0.001;
  return progress;
}

// Scores of 1000 samples of which `positives` are positive, all predicted as `prediction`.
report::ScoreDetail Scores(uint64_t positives, double prediction) {
  report::ScoreCollector collector;
  for (uint64_t i = 0; i < 1000; ++i) {
    collector.Add(i < positives ? 1.0f : 0.0f, static_cast<float>(prediction),
                  std::log(prediction / (1 - prediction)));
  }
  report::ScoreDetail detail = collector.Detail();
  detail.highest += 0.1;  // predictions differ, unless a test says otherwise
  detail.keys = 1000;
  return detail;
}

Progress Final(const report::ScoreDetail& scores) {
  Progress progress = Event(report::RunEvent::kFinal, 500);
  progress.auc = 0.7;
  progress.scores = std::make_shared<report::ScoreDetail>(scores);
  return progress;
}

// The warnings of a run whose lines have these losses.
std::vector<std::string> OfLosses(const std::vector<double>& losses, double positives) {
  RunWarnings warnings;
  warnings.KnowLossOfConstant(LossOfConstant(positives, 1));
  std::vector<std::string> all;
  for (size_t i = 0; i < losses.size(); ++i) {
    Progress progress = Event(report::RunEvent::kTrain, 100 * i);
    progress.loss = losses[i];
    for (const std::string& message : warnings.Observe(progress)) all.push_back(message);
  }
  return all;
}

TEST(RunWarnings, NameALossThatDoesNotFall) {
  EXPECT_THAT(OfLosses({.693, .694, .692, .693, .694, .693, .692, .694, .693, .695, .694}, 0.5),
              ElementsAre(HasSubstr("does not fall")));
}

TEST(RunWarnings, AreSilentAboutALossThatFalls) {
  EXPECT_THAT(OfLosses({.693, .69, .68, .67, .67, .66, .66, .65, .66, .65, .65}, 0.5), IsEmpty());
  // A model that starts trained has a low loss already.
  EXPECT_THAT(OfLosses({.4, .41, .4, .39, .41, .4, .4, .41, .4, .41, .4}, 0.5), IsEmpty());
}

TEST(RunWarnings, AreSilentAboutTheLossOfAResumedRun) {
  RunWarnings warnings;
  warnings.Observe(Event(report::RunEvent::kResume, 1000));
  for (size_t i = 0; i < 20; ++i) {
    Progress progress = Event(report::RunEvent::kTrain, 1000 + i);
    progress.loss = 0.6;
    EXPECT_THAT(warnings.Observe(progress), IsEmpty());
  }
}

TEST(RunWarnings, NameConstantPredictions) {
  report::ScoreDetail scores = Scores(300, 0.3);
  scores.highest = scores.lowest;
  EXPECT_THAT(RunWarnings().Observe(Final(scores)), ElementsAre(HasSubstr("all predictions")));
  EXPECT_THAT(RunWarnings().Observe(Final(Scores(300, 0.3))), IsEmpty());
}

TEST(RunWarnings, LeaveAnUntrainedModelAlone) {
  report::ScoreDetail scores = Scores(300, 0.3);
  scores.highest = scores.lowest;
  Progress progress = Final(scores);
  progress.event = report::RunEvent::kEval;
  progress.epoch = 0.1;
  EXPECT_THAT(RunWarnings().Observe(progress), IsEmpty());
}

TEST(RunWarnings, NameLabelsOtherThanZeroAndOne) {
  report::ScoreDetail scores = Scores(300, 0.3);
  scores.other_labels = 7;
  EXPECT_THAT(RunWarnings().Observe(Final(scores)), ElementsAre(HasSubstr("7 of 1000 labels")));
}

TEST(RunWarnings, NameUnseenKeys) {
  report::ScoreDetail scores = Scores(300, 0.3);
  scores.unseen_keys = 600;
  EXPECT_THAT(RunWarnings().Observe(Final(scores)), ElementsAre(HasSubstr("60 % of the keys")));
  scores.unseen_keys = 400;
  EXPECT_THAT(RunWarnings().Observe(Final(scores)), IsEmpty());
}

TEST(RunWarnings, NameALeakAsSoonAsTheAucIsTooGood) {
  Progress progress = Event(report::RunEvent::kEval, 10);
  progress.auc = 0.9991;
  RunWarnings warnings;
  EXPECT_THAT(warnings.Observe(progress), ElementsAre(HasSubstr("AUC is 0.999100")));
  EXPECT_THAT(warnings.Observe(progress), IsEmpty());  // once
  progress.auc = 0.9989;
  EXPECT_THAT(RunWarnings().Observe(progress), IsEmpty());
}

TEST(RunWarnings, NameACalibrationThatIsOff) {
  EXPECT_THAT(RunWarnings().Observe(Final(Scores(300, 0.45))),
              ElementsAre(HasSubstr("ratio 1.50")));
  EXPECT_THAT(RunWarnings().Observe(Final(Scores(300, 0.2))), ElementsAre(HasSubstr("ratio 0.67")));
  EXPECT_THAT(RunWarnings().Observe(Final(Scores(300, 0.33))), IsEmpty());
}

TEST(RunWarnings, DoNotCompareAnExactShareWithThatOfOtherRows) {
  RunWarnings of_new_day;
  of_new_day.KnowExactShare(0.2);  // of the new day; the evaluation holds rows of another one, too
  EXPECT_THAT(of_new_day.Observe(Final(Scores(300, 0.19))), IsEmpty());
  EXPECT_THAT(of_new_day.Observe(Final(Scores(300, 0.6))), ElementsAre(HasSubstr("ratio 2.00")));
}

// Of 1000 samples with 300 positives, the AUC of chance deviates by sqrt(1001 / (12 * 300 * 700)),
// which is 0.0199 (Mann and Whitney 1947).
TEST(RunWarnings, NameLabelsOfNewDaysThatAreInverted) {
  EXPECT_THAT(InvertedLabels(0.399, Scores(300, 0.3)), HasSubstr("does 1 mean the same"));
  EXPECT_EQ(InvertedLabels(0.402, Scores(300, 0.3)), "");
  EXPECT_EQ(InvertedLabels(0.6, Scores(300, 0.3)), "");
}

TEST(RunWarnings, NameAnAucLikeThatOfChance) {
  Progress progress = Final(Scores(300, 0.3));
  progress.auc = 0.51;  // the deviation of chance is 0.02
  EXPECT_THAT(RunWarnings().Observe(progress), ElementsAre(HasSubstr("as that of chance")));
  progress.auc = 0.57;
  EXPECT_THAT(RunWarnings().Observe(progress), IsEmpty());
}

TEST(RunWarnings, NameChanceAfterThreeEvaluations) {
  RunWarnings warnings;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    Progress progress = Final(Scores(300, 0.3));
    progress.event = report::RunEvent::kEval;
    progress.epoch = epoch;
    progress.auc = 0.49;
    EXPECT_EQ(warnings.Observe(progress).size(), epoch == 3 ? 1u : 0u);
  }
}

TEST(RunWarnings, NameAnAucBelowChance) {
  Progress progress = Final(Scores(300, 0.3));
  progress.auc = 0.31;
  EXPECT_THAT(RunWarnings().Observe(progress), ElementsAre(HasSubstr("worse than chance")));
}

TEST(RunWarnings, NameALogLossAboveThatOfAConstant) {
  Progress progress = Final(Scores(300, 0.3));
  progress.logloss = 0.7;  // a constant reaches 0.611, give or take 0.032 with 1000 samples
  EXPECT_THAT(RunWarnings().Observe(progress), ElementsAre(HasSubstr("above 0.610864")));
  progress.logloss = 0.62;
  EXPECT_THAT(RunWarnings().Observe(progress), IsEmpty());
}

// Early stopping ends a run that learns nothing after three epochs.
TEST(RunWarnings, NameALossThatDoesNotFallInAShortRun) {
  for (const bool learns : {false, true}) {
    RunWarnings warnings;
    warnings.KnowLossOfConstant(LossOfConstant(0.3, 1));
    for (const double loss : {0.70, 0.70, 0.699}) {
      Progress pass = Event(report::RunEvent::kPass, 10);
      pass.loss = loss;
      EXPECT_THAT(warnings.Observe(pass), IsEmpty());
    }
    Progress final = Final(Scores(300, 0.3));
    final.auc = learns ? 0.7 : 0.56;
    final.logloss = learns ? 0.55 : 0.63;
    EXPECT_EQ(warnings.Observe(final).size(), learns ? 0u : 1u);
  }
}

// -0.3 * 5 * ln q - 0.7 * ln(1 - q) with q = 1.5 / 2.2.
TEST(RunWarnings, KnowWhatTheWeightOfPositivesDoes) {
  EXPECT_NEAR(LossOfConstant(0.3, 5), 1.376081, 1e-6);
  RunWarnings warnings;
  warnings.KnowPositiveWeight(5);
  EXPECT_THAT(warnings.Observe(Final(Scores(100, 0.3))),
              testing::Contains(HasSubstr("cistern.positive_weight multiplies the odds by 5;")));
  EXPECT_THAT(RunWarnings().Observe(Final(Scores(100, 0.3))),
              testing::Contains(HasSubstr("set cistern.negative_rate;")));
}

TEST(RunWarnings, DoNotTakeChanceForCalibration) {
  // 3 positives where 4.5 are expected: chance.
  EXPECT_THAT(RunWarnings().Observe(Final(Scores(3, 0.0045))), IsEmpty());
}

}  // namespace
}  // namespace cistern
