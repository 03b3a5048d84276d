#include "app/demo/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;

// Whole runs: test/integration/demo_test.py.

TEST(Demo, RefusesTooFewSamplesAndAFolderInUse) {
  const TempFolder folder;
  const std::string dir = folder.path() + "/demo";
  const absl::Status few = RunDemo({dir, 3999}, {}).status();
  EXPECT_EQ(few.code(), absl::StatusCode::kInvalidArgument) << few;
  EXPECT_THAT(OptionsOf(few), ElementsAre("samples"));
  EXPECT_FALSE(std::filesystem::exists(dir));

  std::filesystem::create_directory(dir);
  std::ofstream(dir + "/mine");
  const absl::Status used = RunDemo({dir}, {}).status();
  EXPECT_EQ(used.code(), absl::StatusCode::kInvalidArgument) << used;
  EXPECT_THAT(OptionsOf(used), ElementsAre("dir"));
  EXPECT_EQ(FixOf(used), "name a new folder");
}

TEST(Demo, EndsBeforeTheFirstStepOnceItIsStopped) {
  const TempFolder folder;
  const std::atomic<bool> stop = true;
  DemoCalls calls;
  calls.stop = &stop;
  calls.begin = [](const DemoStep& step) { ADD_FAILURE() << step.name; };
  EXPECT_EQ(RunDemo({folder.path() + "/demo"}, calls).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(Demo, ListsItsStepsInJson) {
  DemoResult result;
  result.dir = "/tmp/demo";
  result.steps = {{1, "data", 0.5, "80000 samples"}, {2, "servers", 1.5, "2 servers"}};
  result.train = {{"loss", 0.5}};
  result.auc = 0.75;
  result.best_auc = 0.8;
  result.predictions = 20000;
  EXPECT_EQ(JsonOf(result).dump(),
            R"({"dir":"/tmp/demo","steps":[{"name":"data","seconds":0.5},)"
            R"({"name":"servers","seconds":1.5}],"train":{"loss":0.5},"predictions":20000,)"
            R"("identical":true,"auc":0.75,"best_auc":0.8})");
}

}  // namespace
}  // namespace cistern::app
