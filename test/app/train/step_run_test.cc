#include "app/train/step_run.h"

#include <gmock/gmock.h>

#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

class StepRuns : public RunFixture {
 protected:
  std::shared_ptr<FleetSession> NewSession(const std::string& name) const {
    FleetOptions options;
    options.embedded_servers = 2;
    return *FleetSession::Open(options, folder_ + "/" + name);
  }
  absl::StatusOr<std::unique_ptr<StepRun>> StartOn(const std::shared_ptr<FleetSession>& session,
                                                   bool resume = false, bool again = false,
                                                   const std::vector<std::string>& set = {}) const {
    ModelOptions model;
    model.config = folder_ + "/model.json";
    model.set = {"solver.num_epochs=1", "cistern.pass_memory_mb=1"};
    model.set.insert(model.set.end(), set.begin(), set.end());
    CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, ReadModelConfig(model));
    StepRunOptions options;
    options.threads = 2;
    options.resume = resume;
    options.again = again;
    return StepRun::Start(std::move(config), session, options);
  }
  // Trains to the end of the data; the number of steps.
  static uint64_t TrainToTheEnd(StepRun& run) {
    uint64_t steps = 0;
    while (true) {
      const absl::StatusOr<std::optional<double>> loss = run.Step();
      EXPECT_TRUE(loss.ok()) << loss.status();
      if (!loss.ok() || !loss->has_value()) return steps;
      ++steps;
    }
  }
  static std::string StateOf(FleetSession& session) {
    std::string state;
    for (const v1::TableState& table : session.client().manifest().tables()) {
      absl::StrAppend(&state, table.name(), " ", table.rows(), " ", table.digest(), "\n");
    }
    return state;
  }
};

TEST_F(StepRuns, HaveTheBitsOfATrainingInOnePiece) {
  const std::shared_ptr<FleetSession> whole = NewSession("whole"), parts = NewSession("parts");
  absl::StatusOr<std::unique_ptr<StepRun>> run = StartOn(whole);
  ASSERT_TRUE(run.ok()) << run.status();
  const uint64_t steps = TrainToTheEnd(**run);
  EXPECT_GT(steps, 4u);
  EXPECT_EQ((*run)->Stop()->iterations, steps);
  // Stopped in the middle, and continued by another run.
  run = StartOn(parts);
  ASSERT_TRUE(run.ok()) << run.status();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*run)->Step()->has_value());
  EXPECT_TRUE((*run)->Evaluate()->auc.has_value());
  EXPECT_TRUE((*run)->Stop()->interrupted());
  run = StartOn(parts, /*resume=*/true);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(TrainToTheEnd(**run), steps - 3);
  EXPECT_FALSE(StateOf(*whole).empty());
  EXPECT_EQ(StateOf(*whole), StateOf(*parts));
}

TEST_F(StepRuns, TrainTheSameDataAgainOnlyIfTold) {
  const std::shared_ptr<FleetSession> session = NewSession("again");
  const uint64_t steps = TrainToTheEnd(**StartOn(session));
  EXPECT_EQ(TrainToTheEnd(**StartOn(session, /*resume=*/true)), 0u);
  EXPECT_EQ(TrainToTheEnd(**StartOn(session, /*resume=*/true, /*again=*/true)), steps);
}

TEST_F(StepRuns, StopBeforeTheirFirstStepChangesNothing) {
  const std::shared_ptr<FleetSession> session = NewSession("none");
  TrainToTheEnd(**StartOn(session));
  const std::string state = StateOf(*session);
  absl::StatusOr<std::unique_ptr<StepRun>> run = StartOn(session, true, true);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ((*run)->Stop()->iterations, 0u);
  EXPECT_TRUE(absl::IsFailedPrecondition((*run)->Evaluate().status()));
  EXPECT_FALSE((*run)->Step()->has_value());
  EXPECT_EQ(StateOf(*session), state);
}

TEST_F(StepRuns, TakeALearningRate) {
  const double scheduled = 0.01;  // in the model file
  // Half of it: given, scheduled, and not at all.
  const std::vector<std::string> half = {
      absl::StrCat("optimizer.adam_hparam.learning_rate=", scheduled / 2)};
  std::vector<double> losses[3];
  for (const int way : {0, 1, 2}) {
    absl::StatusOr<std::unique_ptr<StepRun>> run =
        StartOn(NewSession(absl::StrCat("way", way)), false, false,
                way == 1 ? half : std::vector<std::string>());
    ASSERT_TRUE(run.ok()) << run.status();
    std::optional<double> rate;
    if (way == 0) rate = scheduled / 2;
    for (int i = 0; i < 4; ++i) losses[way].push_back((*run)->Step(rate)->value());
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-6) << i;
  EXPECT_GT(std::abs(losses[0][3] - losses[2][3]), 1e-5);
}

TEST_F(StepRuns, SayAtTheirStartWhatIsWrong) {
  std::ofstream(folder_ + "/model.json") << "{}";
  EXPECT_THAT(std::string(StartOn(NewSession("bad")).status().message()), HasSubstr("solver"));
  std::ofstream(folder_ + "/model.json") << ModelText();
  const std::shared_ptr<FleetSession> session = NewSession("other");
  TrainToTheEnd(**StartOn(session));
  std::string text = ModelText();
  const size_t seed = text.find("\"batchsize\"");
  ASSERT_NE(seed, std::string::npos);
  text.insert(seed, "\"seed\": 77, ");
  std::ofstream(folder_ + "/model.json") << text;
  EXPECT_FALSE(StartOn(session, true, true).ok());
}

}  // namespace
}  // namespace cistern::app
