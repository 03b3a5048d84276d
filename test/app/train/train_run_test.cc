#include "app/train/train_run.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "app/model/export_source.h"
#include "app/run/run_files.h"
#include "app/run/run_recipe.h"
#include "app/train/train_json.h"
#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TrainRuns : public RunFixture {};

TEST_F(TrainRuns, LeaveAWholeRunFolder) {
  std::vector<report::RunEvent> events;
  TrainRunCalls calls;
  calls.progress = [&events](const Progress& progress) {
    if (events.empty() || events.back() != progress.event) events.push_back(progress.event);
    return true;
  };
  const absl::StatusOr<TrainRunResult> run =
      RunOf(RunOptions("run", {"solver.num_epochs=1"}), calls);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->summary.samples, 4000u);
  EXPECT_GT(run->summary.rows, 0u);
  EXPECT_TRUE(run->durable);
  EXPECT_FALSE(run->ended);
  EXPECT_EQ(events.back(), report::RunEvent::kFinal);
  for (const char* name :
       {"model.json", "metrics.jsonl", "run.json", "report.html", "model", "state"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/run/" + name)) << name;
  }
  EXPECT_EQ(run->page, folder_ + "/run/report.html");
  EXPECT_TRUE(IsRunFolder(folder_ + "/run"));
  EXPECT_FALSE(RecipeOfModel(folder_ + "/run")->has_value());  // Norm files have none
  const nlohmann::ordered_json json = JsonOf(run->summary);
  EXPECT_EQ(json["samples"], 4000);
  EXPECT_EQ(json["auc"], *run->summary.score.auc);
}

TEST_F(TrainRuns, RefuseAFolderThatHoldsAnother) {
  const TrainRunOptions options = RunOptions("run", {"solver.num_epochs=1"});
  ASSERT_TRUE(RunOf(options).ok());
  const absl::Status refused = RunOf(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("already holds the state of a run"));
  EXPECT_THAT(OptionsOf(refused), ElementsAre("resume", "overwrite", "out"));
  TrainRunOptions again = options;
  again.overwrite = true;
  EXPECT_TRUE(RunOf(again).ok());
  again.resume = true;
  EXPECT_THAT(OptionsOf(RunOf(again).status()), ElementsAre("resume", "overwrite"));
  EXPECT_THAT(OptionsOf(RunOf(RunOptions("")).status()), testing::IsEmpty());  // the folder itself
  TrainRunOptions nowhere = options;
  nowhere.out = "";
  EXPECT_THAT(OptionsOf(RunOf(nowhere).status()), ElementsAre("out"));
}

TEST_F(TrainRuns, RefuseToPublishWhatTheyDoNotKeep) {
  TrainRunOptions options = RunOptions("run");
  options.publish = folder_ + "/serving";
  options.save_model = false;
  EXPECT_THAT(OptionsOf(RunOf(options).status()),
              ElementsAre("publish", "durability", "no_save_model"));
  options.save_model = true;
  options.model.fleet.servers = "127.0.0.1:1";
  EXPECT_THAT(OptionsOf(RunOf(options).status()), ElementsAre("publish", "servers"));
  options.model.fleet.servers = "";
  options.publish = std::string(folder_);
  EXPECT_THAT(OptionsOf(RunOf(options).status()), ElementsAre("publish"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
}

TEST_F(TrainRuns, EndWithTheirStateSavedAndResumeToTheSameBits) {
  const std::vector<std::string> set = {"cistern.pass_memory_mb=1", "solver.num_epochs=10"};
  const absl::StatusOr<TrainRunResult> whole = RunOf(RunOptions("whole", set));
  ASSERT_TRUE(whole.ok()) << whole.status();
  TrainRunOptions options = RunOptions("parts", set);
  TrainRunCalls calls;
  calls.progress = [](const Progress& progress) {
    return progress.event != report::RunEvent::kPass;
  };
  const absl::StatusOr<TrainRunResult> first = RunOf(options, calls);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->ended);
  EXPECT_TRUE(first->summary.interrupted());
  EXPECT_LT(first->summary.samples, 40000u);
  options.resume = true;
  const absl::StatusOr<TrainRunResult> rest = RunOf(options);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->summary.samples, 40000u);
  EXPECT_EQ(rest->summary.score.auc, whole->summary.score.auc);
  EXPECT_EQ(rest->summary.score.logloss, whole->summary.score.logloss);
}

TEST_F(TrainRuns, OfOtherTablesAreNotResumed) {
  TrainRunOptions options = RunOptions("run", {"solver.num_epochs=1"});
  ASSERT_TRUE(RunOf(options).ok());
  options.resume = true;
  options.model.set.push_back("solver.seed=8");
  const absl::Status refused = RunOf(options).status();
  EXPECT_EQ(KindOf(refused), ErrorKind::kOtherSchema) << refused;
  EXPECT_THAT(FixOf(refused), HasSubstr("seed"));
}

TEST_F(TrainRuns, AreTheSourceOfExports) {
  ASSERT_TRUE(RunOf(RunOptions("run", {"solver.num_epochs=1"})).ok());
  ExportOptions options;
  options.model.config = folder_ + "/run";
  const absl::StatusOr<ExportSource> source = OpenExportSource(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->model->schema().tables_size(), 1);
  options.state = folder_ + "/run/state";
  options.model_dir = folder_ + "/run/model";
  EXPECT_THAT(std::string(OpenExportSource(options).status().message()),
              HasSubstr("more than one trained model"));
}

}  // namespace
}  // namespace cistern::app
