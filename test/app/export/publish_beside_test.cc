#include "app/export/publish_beside.h"

#include <gmock/gmock.h>

#include "test/app/export/publish_fixture.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

using PublishBesideTest = PublishFixture;

TEST_F(PublishBesideTest, EndsWithTheLastCommit) {
  std::atomic<uint64_t> versions = 0, last = 0;
  auto publisher =
      PublishBeside::Start(Options(), nullptr, [&](const ServingWritten& written, double) {
        ++versions;
        last = written.version.commit;
      });
  ASSERT_TRUE(publisher.ok()) << publisher.status();
  ASSERT_TRUE(RunOf(RunOptions("run", {"cistern.pass_memory_mb=1"})).ok());
  const auto published = (*publisher)->Finish();
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_GT(published->commit, 0u);
  EXPECT_EQ(published->versions, versions);
  EXPECT_EQ(published->commit, last);
}

TEST_F(PublishBesideTest, PublishesNothingMoreWithoutFinish) {
  std::atomic<uint64_t> versions = 0;
  auto publisher =
      PublishBeside::Start(Options(), nullptr, [&](const ServingWritten&, double) { ++versions; });
  ASSERT_TRUE(publisher.ok());
  publisher->reset();
  ASSERT_TRUE(RunOf(RunOptions("run", {"solver.num_epochs=1"})).ok());
  EXPECT_EQ(versions, 0u);
}

TEST_F(PublishBesideTest, SaysWhereItCouldNotPublish) {
  PublishOptions options = Options();
  auto publisher = PublishBeside::Start(options, nullptr, nullptr);
  ASSERT_TRUE(publisher.ok());
  const absl::Status nothing = (*publisher)->Finish().status();  // there is no training
  EXPECT_TRUE(absl::IsInvalidArgument(nothing)) << nothing;
  EXPECT_THAT(nothing.message(), HasSubstr("publishing to " + options.version.out));
  std::ofstream(folder_ + "/other") << "x";
  options.version.out = std::string(folder_);
  EXPECT_THAT(PublishBeside::Start(options, nullptr, nullptr).status().message(),
              HasSubstr("is not a serving folder"));
}

}  // namespace
}  // namespace cistern::app
