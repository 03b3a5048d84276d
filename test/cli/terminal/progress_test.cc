#include "cli/terminal/progress.h"

#include <gtest/gtest.h>

namespace cistern::cli {
namespace {

Progress ExampleProgress() {
  Progress progress;
  progress.event = report::RunEvent::kTrain;
  progress.iter = 420;
  progress.samples = 107520;
  progress.total_iterations = 1000;
  progress.loss = 0.345678;
  progress.lr = 0.001;
  progress.seconds = 2.5;
  progress.samples_per_second = 45678.4;
  progress.seconds_left = 130;
  return progress;
}

TEST(PlainLine, ContainsTheFieldsOfTheEvent) {
  EXPECT_EQ(PlainLine(ExampleProgress()),
            "event=train iter=420 samples=107520 loss=0.345678 lr=0.001 seconds=2.50 "
            "samples_per_second=45678 seconds_left=130");
}

TEST(PlainLine, ContainsTheMetricsOfAnEvaluation) {
  Progress progress;
  progress.event = report::RunEvent::kEval;
  progress.iter = 5;
  progress.auc = 0.75;
  progress.logloss = 0.5;
  progress.metrics = {{"ne", 0.25, "", false}, {"copc", std::nullopt, "why", false}};
  progress.unseen_keys = 12;
  EXPECT_EQ(PlainLine(progress),
            "event=eval iter=5 samples=0 auc=0.75 logloss=0.5 ne=0.25 unseen_keys=12 seconds=0.00 "
            "samples_per_second=0");
}

TEST(PlainLine, CountsSkippedSteps) {
  Progress progress;
  progress.event = report::RunEvent::kPass;
  progress.rows = 200;
  progress.skipped_steps = 3;
  EXPECT_EQ(PlainLine(progress),
            "event=pass iter=0 samples=0 rows=200 skipped_steps=3 seconds=0.00 "
            "samples_per_second=0");
}

TEST(PlainLine, EndsWithTheMessage) {
  Progress progress;
  progress.event = report::RunEvent::kRecover;
  progress.pass = 7;
  progress.message = "server 1 was lost";
  EXPECT_EQ(PlainLine(progress),
            "event=recover iter=0 samples=0 pass=7 seconds=0.00 samples_per_second=0 "
            "message=\"server 1 was lost\"");
}

TEST(MetricLines, AreAlignedAndExplainUndefinedMetrics) {
  const model::MetricValues metrics = {
      {"ne", 0.25, "", false}, {"copc", std::nullopt, "why", false}, {"gauc_groups", 12, "", true}};
  EXPECT_EQ(MetricLines(metrics, 6),
            "ne          0.250000\ncopc        none: why\ngauc_groups 12\n");
  EXPECT_EQ(MetricLines({}, 6), "");
}

}  // namespace
}  // namespace cistern::cli
