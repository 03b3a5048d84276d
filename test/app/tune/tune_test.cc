#include "app/tune/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TuneTest : public RunFixture {
 protected:
  TuneOptions Options(uint64_t trials) const {
    TuneOptions options;
    options.model = RunOptions("unused").model;
    options.input = options.model.config;
    options.out = folder_ + "/tuned";
    options.trials = trials;
    return options;
  }
  static std::vector<std::string> StatesOf(const TuneResult& result) {
    std::vector<std::string> states;
    for (const Trial& trial : result.trials) states.push_back(TrialEndName(trial.end));
    return states;
  }
};

TEST_F(TuneTest, TrainsVariantsAndKeepsTheBest) {
  std::vector<std::string> notes;
  TuneCalls calls;
  calls.note = [&](const std::string& line) { notes.push_back(line); };
  const absl::StatusOr<TuneResult> result = Tune(Options(2), calls);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome(), absl::OkStatus());
  EXPECT_THAT(StatesOf(*result), ElementsAre("finished", "finished"));
  EXPECT_NE(BestOf(result->trials), nullptr);
  EXPECT_THAT(notes, testing::Contains(HasSubstr("trial 2 of 2: learning rate")));
  EXPECT_TRUE(*Disk().Exists(TrialFolder(Options(2).out, 2) + "/model"));
  EXPECT_FALSE(*Disk().Exists(TrialFolder(Options(2).out, 2) + "/state"));
}

TEST_F(TuneTest, ContinuesASearchAndReplacesNoneUnasked) {
  ASSERT_TRUE(Tune(Options(1), {}).ok());
  const absl::Status refused = Tune(Options(2), {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(OptionsOf(refused), ElementsAre("out", "resume", "overwrite"));
  TuneOptions again = Options(2);
  again.resume = true;
  std::vector<std::string> trained;
  TuneCalls calls;
  calls.train = [&](const model::ModelConfig& config, const TrainRunOptions& options,
                    const std::function<bool(const Progress&)>& goes_on) {
    trained.push_back(options.out);
    TrainRunCalls run;
    run.progress = goes_on;
    return TrainRun(config, options, run);
  };
  const absl::StatusOr<TuneResult> result = Tune(again, calls);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->trials.size(), 2u);
  EXPECT_THAT(trained, ElementsAre(TrialFolder(again.out, 2)));
  again.seed = 5;
  EXPECT_THAT(std::string(Tune(again, {}).status().message()), HasSubstr("differs in seed"));
}

TEST_F(TuneTest, AFailedTrialIsAResult) {
  TuneCalls calls;
  calls.train = [](const model::ModelConfig&, const TrainRunOptions&,
                   const std::function<bool(const Progress&)>&) -> absl::StatusOr<TrainRunResult> {
    return absl::ResourceExhaustedError("no memory");
  };
  const absl::StatusOr<TuneResult> result = Tune(Options(2), calls);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(StatesOf(*result), ElementsAre("failed", "failed"));
  EXPECT_TRUE(absl::IsFailedPrecondition(result->outcome()));
  EXPECT_THAT(std::string(result->outcome().message()), HasSubstr("no memory"));
}

TEST_F(TuneTest, EndsWithItsTimeOrAnInterrupt) {
  TuneOptions options = Options(3);
  options.time = absl::Nanoseconds(1);
  const absl::StatusOr<TuneResult> late = Tune(options, {});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_TRUE(late->out_of_time);
  EXPECT_TRUE(late->trials.empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(late->outcome()));
  const std::atomic<bool> interrupted = true;
  TuneCalls calls;
  calls.interrupted = &interrupted;
  options.overwrite = true;
  const absl::StatusOr<TuneResult> ended = Tune(options, calls);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(absl::IsCancelled(ended->outcome()));
}

TEST_F(TuneTest, RefusesWhatCannotBe) {
  const auto error = [&](const std::function<void(TuneOptions*)>& change) {
    TuneOptions options = Options(2);
    change(&options);
    const absl::Status status = Tune(options, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return OptionsOf(status);
  };
  EXPECT_THAT(error([](TuneOptions* o) { o->trials = 0; }), ElementsAre("trials"));
  EXPECT_THAT(error([](TuneOptions* o) { o->trials = 100000; }), ElementsAre("trials"));
  EXPECT_THAT(error([](TuneOptions* o) { o->resume = o->overwrite = true; }),
              ElementsAre("resume", "overwrite"));
  EXPECT_THAT(error([](TuneOptions* o) { o->model.set = {"layers.0.eval_source="}; }),
              ElementsAre("set=layers.0.eval_source=FILE"));
  // A run is worth more than a search.
  const std::string run = Options(2).out + "-run";
  std::filesystem::create_directories(run);
  for (const char* const file : {"/model.json", "/metrics.jsonl"})
    std::ofstream(run + file) << "{}";
  EXPECT_THAT(error([&](TuneOptions* o) { o->out = run; }), ElementsAre("out"));
  EXPECT_THAT(error([&](TuneOptions* o) { o->out = run, o->overwrite = true; }),
              ElementsAre("out"));
}

}  // namespace
}  // namespace cistern::app
