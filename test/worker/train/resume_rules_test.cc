// Rules of resuming: after interrupts, under other limits or settings, and without a commit.
#include <gmock/gmock.h>

#include "test/worker/train/resume_fixture.h"
#include "worker/train/position.h"

namespace cistern {
namespace {

using testing::HasSubstr;

class ResumeRules : public Resume {};

TEST_F(ResumeRules, RepeatedInterruptsDoNotChangeTheResultOfARun) {
  for (const char* shuffle : {"cistern.shuffle=false", "cistern.shuffle=true"}) {
    const model::ModelConfig config =
        CutConfig({"solver.num_epochs=2", "solver.snapshot=0", shuffle});
    Outcome expected = Undisturbed(config);
    Scene scene(folder_ + "/interrupted");
    auto client = scene.Client();
    for (int stops = 0;; ++stops) {
      ASSERT_LT(stops, 20);
      std::atomic<bool> interrupted{false};
      JobOptions options = scene.Options(/*resume=*/stops > 0);
      options.interrupted = &interrupted;
      // After the second line of two steps: inside a pass of 16 steps.
      int lines = 0;
      options.progress = [&](const Progress& p) {
        interrupted = (lines += p.event == report::RunEvent::kTrain) > 1;
      };
      const auto summary = Train(config, *client, options);
      ASSERT_TRUE(summary.ok()) << summary.status();
      if (summary->interrupted()) continue;
      EXPECT_GT(stops, 5);
      const Outcome outcome = OutcomeOf(config, *client, scene, *summary);
      EXPECT_EQ(outcome.digests, expected.digests);
      EXPECT_EQ(outcome.predictions, expected.predictions);
      EXPECT_EQ(outcome.samples, expected.samples);
      break;
    }
  }
}

TEST_F(ResumeRules, AnInterruptLeavesTheBestEpochInTheModelAndTheLastStepOnTheServers) {
  const model::ModelConfig config = CutConfig(kBestOfSeven);
  const Outcome expected = Undisturbed(config);
  Scene scene(folder_ + "/interrupted");
  auto client = scene.Client();
  std::atomic<bool> interrupted{false};
  JobOptions options = scene.Options();
  options.interrupted = &interrupted;
  options.progress = [&](const Progress& p) { interrupted = p.iter >= 40; };  // in the third epoch
  const auto stopped = Train(config, *client, options);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->interrupted());
  EXPECT_EQ(client->committed_pass(), 3u);
  EXPECT_NE(ModelPredictions(config, scene), "");
  EXPECT_TRUE(scene.disk->Exists(scene.out + "/best").value());
  const auto summary = Train(config, *client, scene.Options(/*resume=*/true));
  ASSERT_TRUE(summary.ok()) << summary.status();
  const Outcome outcome = OutcomeOf(config, *client, scene, *summary);
  EXPECT_EQ(outcome.predictions, expected.predictions);
  EXPECT_EQ(outcome.digests, expected.digests);
  EXPECT_EQ(outcome.auc, expected.auc);
  EXPECT_EQ(outcome.names, expected.names);
}

TEST_F(ResumeRules, AFinishedRunContinuesOnlyUnderALargerLimit) {
  for (const bool best : {false, true}) {
    const std::vector<std::string> more =
        best ? std::vector<std::string>{"cistern.eval_every_epoch=true", "cistern.keep_best=true",
                                        "optimizer.adam_hparam.learning_rate=1.5"}
             : std::vector<std::string>{};
    const auto config = [&](int epochs) {
      std::vector<std::string> overrides = more;
      overrides.push_back(absl::StrCat("solver.num_epochs=", epochs));
      return CutConfig(overrides);
    };
    const Outcome four = Undisturbed(config(4)), six = Undisturbed(config(6));
    EXPECT_EQ(four.pass < 16,
              best);  // an epoch has four passes: the run returned to an earlier one
    Scene scene(folder_ + "/over");
    auto client = scene.Client();
    ASSERT_TRUE(Train(config(4), *client, scene.Options()).ok());
    for (const int epochs : {4, 3}) {
      const auto same = Train(config(epochs), *client, scene.Options(/*resume=*/true));
      ASSERT_TRUE(same.ok()) << same.status();
      EXPECT_EQ(same->resumed_from, same->iterations);
      EXPECT_EQ(same->stopped_by, report::StopReason::kEpochs);
      EXPECT_EQ(same->score.auc, four.auc);
      EXPECT_EQ(DigestsOf(*client), four.digests);
      EXPECT_EQ(ModelPredictions(config(4), scene), four.predictions);
    }
    const auto summary = Train(config(6), *client, scene.Options(/*resume=*/true));
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(OutcomeOf(config(6), *client, scene, *summary), six);
  }
}

TEST_F(ResumeRules, AnotherTrainingIsRefusedWithTheDifference) {
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  ASSERT_TRUE(Train(CutConfig({"solver.num_epochs=1"}), *client, scene.Options()).ok());
  const std::vector<std::string> lines = LinesOf(scene);
  const absl::Status other = Train(CutConfig({"solver.num_epochs=2", "solver.batchsize=32"}),
                                   *client, scene.Options(/*resume=*/true))
                                 .status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.message()), HasSubstr("solver.batchsize is 32"));
  EXPECT_EQ(LinesOf(scene), lines);
}

TEST_F(ResumeRules, FewerEpochsThanTheRunHasBegunAreRefused) {
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  JobOptions options = scene.Options();
  std::atomic<bool> interrupted = false;
  options.interrupted = &interrupted;
  options.progress = [&](const Progress& p) { interrupted = interrupted || p.iter >= 40; };
  const auto first = Train(CutConfig({"solver.num_epochs=4"}), *client, options);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->interrupted());
  options = scene.Options(/*resume=*/true);
  const absl::Status fewer = Train(CutConfig({"solver.num_epochs=1"}), *client, options).status();
  EXPECT_EQ(fewer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fewer.message()),
              HasSubstr("already in epoch 3; solver.num_epochs=1 is lower: use 3 or more"));
  EXPECT_TRUE(Train(CutConfig({"solver.num_epochs=3"}), *client, options).ok());
}

TEST_F(ResumeRules, ARunWithoutACommitStartsFromTheBeginning) {
  const model::ModelConfig config = CutConfig({"solver.num_epochs=1"});
  const Outcome expected = Undisturbed(config);
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  std::vector<std::string> said;
  JobOptions options = scene.Options(/*resume=*/true);
  options.progress = [&](const Progress& p) {
    if (p.event == report::RunEvent::kResume) said.push_back(p.message);
  };
  const auto summary = Train(config, *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->resumed_from.has_value());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("starting from the beginning"));
  EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
}

TEST_F(ResumeRules, ResumeRequiresDurableServers) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  JobOptions options = Options("memory");
  options.resume = true;
  const absl::Status status = Train(CutConfig(), *client, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("started without a data_dir"));
}

TEST_F(ResumeRules, WithoutResumeDataRestartsAndStepsContinue) {
  const model::ModelConfig config = CutConfig({"solver.num_epochs=1"});
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  for (uint64_t runs = 1; runs <= 3; ++runs) {
    ASSERT_TRUE(Train(config, *client, scene.Options()).ok());
    const auto position = ParsePosition(client->manifest().worker());
    ASSERT_TRUE(position.ok()) << position.status();
    EXPECT_EQ(position->steps(), runs * 16);
    EXPECT_EQ(position->iterations, 16u);
    EXPECT_EQ(position->samples, 1000u);
  }
}

}  // namespace
}  // namespace cistern
