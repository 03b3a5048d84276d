// A serving folder that follows the commits of a training.
#include "app/export/publish.h"

#include <gmock/gmock.h>

#include "test/app/export/publish_fixture.h"
#include "worker/export/serving/version_series.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using PublishTest = PublishFixture;

TEST_F(PublishTest, PublishesTheNewestCommitOnce) {
  ASSERT_TRUE(RunOf(RunOptions("run", {"solver.num_epochs=1"})).ok());
  PublishOptions options = Options();
  options.once = true;
  const auto published = Publish(options, {}, nullptr);
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(published->versions, 1u);
  EXPECT_GT(published->commit, 0u);
  const auto again = Publish(options, {}, nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->versions, 0u);
  EXPECT_EQ(again->commit, published->commit);
}

TEST_F(PublishTest, RunsUntilItIsStopped) {
  ASSERT_TRUE(RunOf(RunOptions("run", {"solver.num_epochs=1"})).ok());
  std::atomic<bool> stop = false;
  JobCalls calls;
  calls.stop = &stop;
  const auto published =
      Publish(Options(), calls, [&](const ServingWritten&, double) { stop = true; });
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(published->versions, 1u);
  // Another one has nothing to publish, and says so.
  stop = false;
  std::string said;
  calls.note = [&](const std::string& note) {
    said = note;
    stop = true;
  };
  EXPECT_EQ(Publish(Options(), calls, nullptr)->versions, 0u);
  EXPECT_THAT(said, HasSubstr("the newest; waiting for the next"));
}

TEST_F(PublishTest, WaitsForATrainingThatIsNotThere) {
  std::atomic<bool> stop = false;
  std::string said;
  JobCalls calls;
  calls.stop = &stop;
  calls.note = [&](const std::string& note) {
    said = note;
    stop = true;
  };
  ASSERT_TRUE(Publish(Options(), calls, nullptr).ok());
  EXPECT_THAT(said, HasSubstr("waiting for the training"));
  PublishOptions once = Options();
  once.once = true;
  EXPECT_FALSE(Publish(once, {}, nullptr).ok());
}

TEST_F(PublishTest, RefusesAShareThatIsNone) {
  PublishOptions options = Options();
  options.base_share = -1;
  const absl::Status status = Publish(options, {}, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(OptionsOf(status), ElementsAre("base_share"));
}

}  // namespace
}  // namespace cistern::app
