#include "app/train/train_stream.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TrainStreams : public RunFixture {
 protected:
  // A run on the stream folder_/in, of Norm files.
  absl::StatusOr<TrainRunResult> OnStream(TrainRunOptions options, bool once = true) {
    CISTERN_RETURN_IF_ERROR(ApplyStream({folder_ + "/in", once}, &options));
    return RunOf(options);
  }
  void AddFile(const std::string& name, unsigned seed) {
    std::filesystem::create_directories(folder_ + "/in");
    WriteSamples(folder_ + "/in/" + name, 500, 300, seed);
  }
};

TEST_F(TrainStreams, ReplaceTheDataOfTheModel) {
  TrainRunOptions options = RunOptions("run", {"cistern.stream.until=stopped", "solver.seed=3"});
  ASSERT_TRUE(ApplyStream({"a\"b", true}, &options).ok());
  // What the user sets wins over `once`, and nothing over the source.
  EXPECT_THAT(options.model.set,
              ElementsAre("cistern.stream.until=empty", "cistern.stream.until=stopped",
                          "solver.seed=3", R"(cistern.stream.source="a\"b")"));
  EXPECT_TRUE(options.more);
  EXPECT_FALSE(options.resume);
}

TEST_F(TrainStreams, AreNotThereWithoutASource) {
  TrainRunOptions options = RunOptions("run", {"solver.seed=3"});
  ASSERT_TRUE(ApplyStream({}, &options).ok());
  EXPECT_THAT(options.model.set, ElementsAre("solver.seed=3"));
  EXPECT_FALSE(options.more);
  const absl::Status refused = ApplyStream({"", true}, &options);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(OptionsOf(refused), ElementsAre("once", "stream"));
  EXPECT_THAT(OptionsOf(ApplyStream({"\xff", false}, &options)), ElementsAre("stream"));
}

TEST_F(TrainStreams, ContinueTheRunInTheFolder) {
  AddFile("a", 11);
  const auto first = OnStream(RunOptions("run"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->summary.samples, 500u);
  AddFile("b", 12);
  const auto second = OnStream(RunOptions("run"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->summary.samples, 1000u);  // of the whole run
  TrainRunOptions again = RunOptions("run");
  again.overwrite = true;
  ASSERT_TRUE(ApplyStream({folder_ + "/in", true}, &again).ok());
  EXPECT_FALSE(again.resume);
  again = RunOptions("run");
  again.worker.world_size = 2;
  ASSERT_TRUE(ApplyStream({folder_ + "/in", true}, &again).ok());
  EXPECT_FALSE(again.resume);
}

TEST_F(TrainStreams, ArePublished) {
  AddFile("a", 11);
  AddFile("b", 12);
  TrainRunOptions options = RunOptions("run", {"cistern.stream.samples=500"});
  options.publish = folder_ + "/serving";
  const auto run = OnStream(options);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->published.has_value());
  EXPECT_GE(run->published->versions, 1u);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/serving/HEAD"));
  // Nothing is new.
  const auto nothing = OnStream(options);
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_GE(nothing->published->commit, run->published->commit);
}

}  // namespace
}  // namespace cistern::app
