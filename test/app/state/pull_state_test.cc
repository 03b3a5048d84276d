#include "app/state/pull_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/app/state/copied_states.h"

namespace cistern::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class PullStateTest : public CopiedStates {};

TEST_F(PullStateTest, AnInterruptedPullGoesOn) {
  RestartableFleet fleet = Fleet(1);
  auto client = Writer(fleet.Links());
  for (uint64_t commit = 1; commit <= 3; ++commit) {
    ASSERT_EQ(server::CommitRound(*client, commit), absl::OkStatus());
  }
  ASSERT_TRUE(PushOf(fleet, 0).ok());
  const std::string to = folder_ / "restored", pulling = to + "/state.pulling";
  std::atomic<bool> stop{false};
  JobCalls calls;
  calls.stop = &stop;
  calls.amount = [&](const Amount& amount) { stop = amount.done == 2; };
  EXPECT_TRUE(absl::IsCancelled(PullState({.from = Copy(), .to = to}, calls).status()));
  EXPECT_FALSE(fs::exists(server::StateFolderOf(to)));
  const std::vector<std::string> fetched = files_.List(pulling + "/data").value();
  ASSERT_EQ(fetched.size(), 2u);
  FlipAByte(pulling + "/data/" + fetched[0]);  // as after a loss of power
  WriteBytes(pulling + "/data/base-9-9-9", "of another commit");
  const auto pulled = PullState({.from = Copy(), .to = to}, {});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_FALSE(fs::exists(pulling));
  EXPECT_FALSE(fs::exists(server::StateFolderOf(to) + "/data/base-9-9-9"));
  server::ServerOptions options;
  options.data_dir = to;
  options.shard_num = 8;
  RestartableFleet other(1, options);
  EXPECT_EQ(DigestsOf(*Writer(other.Links())), DigestsOf(*client));
}

TEST_F(PullStateTest, TheNextTermIsAboveAllThatTheOldFolderKnew) {
  RestartableFleet fleet = LocalFleet(1);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(server::CommitRound(*client, 1), absl::OkStatus());
  ASSERT_TRUE(PushOf(fleet, 0).ok());
  for (int i = 0; i < 4; ++i) ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  const Term newest = client->identity().epoch();
  fleet.Kill(0);
  const PullStateOptions options = {
      .from = Copy(), .to = fleet.data_dir(0), .server = 0, .replace = true};
  const auto pulled = PullState(options, {});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_THAT(pulled->moved, HasSubstr("state.replaced-1"));
  ASSERT_EQ(fleet.Start(0), absl::OkStatus());
  auto next = Writer(fleet.Links());
  EXPECT_GT(next->identity().epoch(), newest);
  EXPECT_FALSE(server::CommitRound(*client, 2).ok()) << "an older writer";
}

}  // namespace
}  // namespace cistern::app
