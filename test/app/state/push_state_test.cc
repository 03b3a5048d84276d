#include "app/state/push_state.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "app/state/pull_state.h"
#include "test/app/state/copied_states.h"

namespace cistern::app {
namespace {

namespace fs = std::filesystem;

class PushStateTest : public CopiedStates {};

TEST_F(PushStateTest, TheCopyIsWholeWhereverAPushIsCut) {
  for (uint64_t cut = 0; cut < 6; ++cut) {
    fs::remove_all(Copy());
    fs::remove_all(folder_ / "fleet");
    RestartableFleet fleet = LocalFleet(3);
    auto client = Writer(fleet.Links());
    uint64_t whole = 0;
    for (uint64_t commit = 1; commit <= 6; ++commit) {
      ASSERT_EQ(server::CommitRound(*client, commit), absl::OkStatus());
      for (size_t rank = 0; rank < 3; ++rank) {
        fleet.node(rank).AwaitCompaction();
        // Ends the push after some files.
        std::atomic<bool> stop{cut == 0};
        JobCalls calls;
        calls.stop = &stop;
        calls.amount = [&](const Amount& amount) { stop = stop || amount.done >= cut; };
        const absl::StatusOr<PushedState> pushed = PushOf(fleet, rank, calls);
        EXPECT_TRUE(pushed.ok() || absl::IsCancelled(pushed.status())) << pushed.status();
        const absl::StatusOr<uint64_t> now = WholeCommit();
        ASSERT_TRUE(now.ok()) << now.status();
        EXPECT_GE(*now, whole) << "the copy went back";
        whole = *now;
      }
    }
    for (size_t rank = 0; rank < 3; ++rank) ASSERT_TRUE(PushOf(fleet, rank).ok());
    EXPECT_EQ(WholeCommit().value(), 6u);
    // Nothing is left over: 3 commits or fewer, and only files that they name.
    EXPECT_LE(files_.List(server::StateFolderOf(Copy()) + "/manifest")->size(), 3u);
    EXPECT_LT(files_.List(server::StateFolderOf(Copy()) + "/data")->size(), 24u);
    const std::vector<uint64_t> digests = DigestsOf(*client);
    for (size_t rank = 0; rank < 3; ++rank) {
      fleet.Kill(rank);
      fs::remove_all(server::StateFolderOf(fleet.data_dir(rank)));
      const auto pulled =
          PullState({.from = Copy(), .to = fleet.data_dir(rank), .server = rank}, {});
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      EXPECT_EQ(pulled->commit, 6u);
      ASSERT_EQ(fleet.Start(rank), absl::OkStatus());
    }
    EXPECT_EQ(DigestsOf(*client), digests);
    auto next = Writer(fleet.Links());
    ASSERT_EQ(server::CommitRound(*next, 7), absl::OkStatus());
  }
}

TEST_F(PushStateTest, AFleetThatWaitsForItsCopiesLosesNoCommitWithADisk) {
  server::ServerOptions options;
  options.data_dir = folder_ / "fleet";
  options.shard_num = 8;
  options.local_state = options.waits_for_copy = true;
  RestartableFleet fleet(2, options);
  auto client = Writer(fleet.Links());
  std::atomic<bool> stop{false};
  JobCalls calls;
  calls.stop = &stop;
  ThreadPool pushes(2);
  std::vector<absl::Status> ended(2);
  std::thread beside([&] {
    pushes.ParallelFor(2, [&](size_t rank) {
      ended[rank] =
          PushState({.state = fleet.data_dir(rank), .to = Copy(), .follow = true}, calls).status();
    });
  });
  for (uint64_t commit = 1; commit <= 5; ++commit) {
    EXPECT_EQ(server::CommitRound(*client, commit), absl::OkStatus());
    // At the moment of the answer, the copy has every file of the commit.
    const v1::Manifest& manifest = client->manifest();
    for (const v1::RowFile& file : manifest.files()) {
      EXPECT_TRUE(
          server::RowFileReader::Open(files_, server::StateFolderOf(Copy()) + "/data", file).ok())
          << file.name();
    }
  }
  stop = true;
  beside.join();
  for (const absl::Status& status : ended) EXPECT_EQ(status, absl::OkStatus());
  const std::vector<uint64_t> digests = DigestsOf(*client);
  for (const size_t lost : {1, 0}) {
    fleet.Kill(lost);
    fs::remove_all(server::StateFolderOf(fleet.data_dir(lost)));
    const auto pulled = PullState({.from = Copy(),
                                   .to = fleet.data_dir(lost),
                                   .server = lost,
                                   .manifest = fleet.data_dir(1 - lost)},
                                  {});
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(pulled->commit, 5u);
    ASSERT_EQ(fleet.Start(lost), absl::OkStatus());
    EXPECT_EQ(DigestsOf(*client), digests);
  }
}

TEST_F(PushStateTest, ServersThatShareAStateWaitForOneCopy) {
  server::ServerOptions options;
  options.data_dir = folder_ / "fleet";
  options.shard_num = 8;
  options.waits_for_copy = true;
  RestartableFleet fleet(2, options);
  auto client = Writer(fleet.Links());
  std::atomic<bool> stop{false};
  JobCalls calls;
  calls.stop = &stop;
  absl::Status ended;
  std::thread beside([&] {
    ended = PushState({.state = fleet.data_dir(0), .to = Copy(), .follow = true}, calls).status();
  });
  for (uint64_t commit = 1; commit <= 3; ++commit) {
    EXPECT_EQ(server::CommitRound(*client, commit), absl::OkStatus());
    for (const v1::RowFile& file : client->manifest().files()) {
      EXPECT_TRUE(
          server::RowFileReader::Open(files_, server::StateFolderOf(Copy()) + "/data", file).ok())
          << file.name();
    }
  }
  stop = true;
  beside.join();
  EXPECT_EQ(ended, absl::OkStatus());
}

TEST_F(PushStateTest, AStateThatServersShareIsCopiedAtOnce) {
  RestartableFleet fleet = Fleet(3);
  auto client = Writer(fleet.Links());
  for (uint64_t commit = 1; commit <= 3; ++commit) {
    ASSERT_EQ(server::CommitRound(*client, commit), absl::OkStatus());
  }
  const auto pushed = PushOf(fleet, 0);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->whole_commit, 3u);
  EXPECT_EQ(WholeCommit().value(), 3u);
  const auto again = PushOf(fleet, 0);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->files, 0u);
  const std::string restored = folder_ / "restored";
  ASSERT_TRUE(PullState({.from = Copy(), .to = restored}, {}).ok());
  server::ServerOptions options;
  options.data_dir = restored;
  options.shard_num = 8;
  RestartableFleet other(2, options);
  EXPECT_EQ(DigestsOf(*Writer(other.Links())), DigestsOf(*client));
}

TEST_F(PushStateTest, TheCopyOfAnotherTrainingIsNotTouched) {
  {
    RestartableFleet other = LocalFleet(1, "other");
    auto client = Writer(other.Links());
    for (uint64_t commit = 1; commit <= 2; ++commit) {
      ASSERT_EQ(server::CommitRound(*client, commit + 50), absl::OkStatus());
    }
    ASSERT_TRUE(PushOf(other, 0).ok());
  }
  RestartableFleet fleet = LocalFleet(1);
  auto client = Writer(fleet.Links());
  for (uint64_t commit = 1; commit <= 4; ++commit) {
    ASSERT_EQ(server::CommitRound(*client, commit), absl::OkStatus());
    const absl::Status refused = PushOf(fleet, 0).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << commit << refused;
  }
  EXPECT_EQ(WholeCommit().value(), 2u);
}

}  // namespace
}  // namespace cistern::app
