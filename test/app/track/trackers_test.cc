#include "app/track/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "app/track/crc32c.h"
#include "app/track/event_figures.h"
#include "app/track/mlflow_log.h"
#include "app/track/tensorboard_log.h"
#include "test/support/temp_folder.h"
#include "worker/report/score_detail.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// The vectors of RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
TEST(Crc32c, HasPublishedValues) {
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
}

TEST(EventFigures, AreTheFiniteOnesOfAnEvent) {
  Progress progress;
  progress.event = report::RunEvent::kEval;
  progress.auc = 0.75;
  progress.logloss = std::nan("");
  progress.metrics = {{"NE", 0.9, "", false}, {"GAUC", std::nullopt, "one class", false}};
  report::ScoreDetail scores;
  scores.predicted = 30;
  scores.positives = 20;
  progress.scores = std::make_shared<const report::ScoreDetail>(scores);
  EXPECT_THAT(FiguresOf(progress),
              ElementsAre(Pair("eval/auc", 0.75), Pair("eval/calibration_ratio", 1.5),
                          Pair("eval/NE", 0.9)));
  progress.event = report::RunEvent::kWarning;
  EXPECT_TRUE(FiguresOf(progress).empty());
}

TEST(Trackers, RefuseNamesThatTheyDoNotKnow) {
  LocalFileSystem files;
  TempFolder folder;
  TrackedRun run{folder.path(), "id", "name", {}};
  const auto unknown = Trackers::Open(files, {"wandb"}, run);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("tensorboard and mlflow"));
  EXPECT_EQ(Trackers::Open(files, {"mlflow", "mlflow"}, run).status().code(),
            absl::StatusCode::kInvalidArgument);
}

Progress TrainEvent(uint64_t iter, double loss) {
  Progress progress;
  progress.event = report::RunEvent::kTrain;
  progress.iter = iter;
  progress.loss = loss;
  return progress;
}

TEST(MlflowLog, ForgetsWhatDidNotHappen) {
  LocalFileSystem files;
  TempFolder folder;
  const TrackedRun run{folder.path(), "cafe", "a", {{"layers[0].name", "data"}, {"..", "no"}}};
  const std::string place = absl::StrCat(folder.path(), "/mlruns/0/", MlflowRunId("cafe"));
  const auto lines = [&] { return *ReadWhole(files, place + "/metrics/train/loss", 1 << 20); };
  auto log = MlflowLog::Open(files, run);
  ASSERT_TRUE(log.ok()) << log.status();
  for (const uint64_t iter : {10, 20, 30}) {
    ASSERT_TRUE((*log)->Observe(TrainEvent(iter, 0.5)).ok());
  }
  Progress recover;
  recover.event = report::RunEvent::kRecover;
  recover.iter = 20;
  ASSERT_TRUE((*log)->Observe(recover).ok());
  ASSERT_TRUE((*log)->Observe(TrainEvent(30, 0.25)).ok());
  EXPECT_THAT(lines(), testing::MatchesRegex("[0-9]+ 0.5 10\n[0-9]+ 0.5 20\n[0-9]+ 0.25 30\n"));
  // Another process resumes before the first figure.
  ASSERT_TRUE((*log)->End(RunOutcome::kInterrupted).ok());
  EXPECT_THAT(*ReadWhole(files, place + "/meta.yaml", 1 << 20), HasSubstr("\nstatus: 5\n"));
  log = MlflowLog::Open(files, run);
  ASSERT_TRUE(log.ok()) << log.status();
  recover.event = report::RunEvent::kResume;
  recover.iter = 5;
  ASSERT_TRUE((*log)->Observe(recover).ok());
  EXPECT_FALSE(*files.Exists(place + "/metrics/train/loss"));
  EXPECT_EQ(*ReadWhole(files, place + "/params/layers.0.name", 100), "data");
  EXPECT_THAT(*ReadWhole(files, place + "/meta.yaml", 1 << 20), HasSubstr("\nstatus: 1\n"));
}

}  // namespace
}  // namespace cistern::app
