// A state in another placement: the same rows, completely or not at all.
#include "server/checkpoint/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/checkpoint/verify_state.h"
#include "test/server/checkpoint/small_state.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;

constexpr char kOld[] = "old", kNew[] = "new";

class ReshardTest : public testing::Test {
 protected:
  absl::StatusOr<ReshardTotals> Run(FileSystem& files, uint32_t shard_num, uint32_t server_num) {
    CISTERN_ASSIGN_OR_RETURN(const auto from, StateFolder::OpenToRead(files, StateFolderOf(kOld)));
    CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, from->NewestManifest());
    return Reshard(*from, *newest, StateFolderOf(kNew),
                   ShardMap::Create(shard_num, server_num).value(), pool_);
  }
  // The faults of the newest commit.
  std::vector<absl::Status> FaultsOf(const std::string& data_dir) {
    const auto folder = StateFolder::OpenToRead(disk_, StateFolderOf(data_dir)).value();
    return StateVerifier(*folder, pool_).Check(folder->Commits()->back()).faults;
  }
  bool HasCommits(const std::string& data_dir) {
    const auto folder = StateFolder::OpenToRead(disk_, StateFolderOf(data_dir));
    return folder.ok() && !(*folder)->Commits()->empty();
  }

  MemoryFileSystem disk_;
  ThreadPool pool_{2};
};

TEST_F(ReshardTest, RecoversWithEqualDigestsInAnyPlacement) {
  const std::vector<uint64_t> digests = MakeSmallState(disk_, kOld, 2, 4);
  const std::vector<std::pair<uint32_t, uint32_t>> placements = {{8, 3}, {6, 2}, {5, 5}, {1, 1}};
  for (const auto& [shard_num, server_num] : placements) {
    SCOPED_TRACE(absl::StrCat(shard_num, " shards on ", server_num));
    ASSERT_EQ(RemoveTree(disk_, kNew), absl::OkStatus());
    const auto totals = Run(disk_, shard_num, server_num);
    ASSERT_TRUE(totals.ok()) << totals.status();
    EXPECT_EQ(totals->commit, 4u);
    EXPECT_EQ(totals->files, server_num);
    EXPECT_THAT(FaultsOf(kNew), testing::IsEmpty());
    EXPECT_EQ(RecoveredDigests(disk_, kNew, server_num, shard_num), digests);
  }
  EXPECT_EQ(RecoveredDigests(disk_, kOld, 2, 8), digests);
}

TEST_F(ReshardTest, TheNewStateAcceptsCommits) {
  MakeSmallState(disk_, kOld, 2, 2);
  ASSERT_TRUE(Run(disk_, 6, 3).ok());
  ServerOptions options;
  options.files = &disk_;
  options.data_dir = kNew;
  options.shard_num = 6;
  RestartableFleet fleet(3, options);
  auto client = Writer(fleet.Links());
  EXPECT_EQ(client->committed_pass(), 2u);
  EXPECT_EQ(client->manifest().worker(), "{\"round\": 2}");
  ASSERT_EQ(CommitRound(*client, 3), absl::OkStatus());
  EXPECT_EQ(client->manifest().commit(), 3u);
  const std::vector<uint64_t> digests = DigestsOf(*client);
  for (size_t rank = 0; rank < 3; ++rank) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), digests);
}

TEST_F(ReshardTest, AnyFailureLeavesNothingOrAllAndARepeatSucceeds) {
  const std::vector<uint64_t> digests = MakeSmallState(disk_, kOld, 2, 2);
  FaultFileSystem failing(&disk_);
  for (const Fault fault : {Fault::kNoSpace, Fault::kLostReply}) {
    uint64_t call = 1;
    for (;; ++call) {
      SCOPED_TRACE(absl::StrCat("call ", call));
      ASSERT_EQ(RemoveTree(disk_, kNew), absl::OkStatus());
      failing.FailCall(call, fault);
      const absl::Status failed = Run(failing, 6, 2).status();
      if (failing.hits().empty()) break;
      failing.FailNothing();
      if (HasCommits(kNew)) {
        EXPECT_THAT(FaultsOf(kNew), testing::IsEmpty());
      }
      const auto totals = Run(disk_, 6, 2);
      ASSERT_TRUE(totals.ok()) << totals.status() << " after " << failed;
      EXPECT_THAT(FaultsOf(kNew), testing::IsEmpty());
      EXPECT_EQ(disk_.List(StateFolderOf(kNew) + "/data")->size(), 2u);
    }
    EXPECT_GT(call, 20u);
  }
  EXPECT_EQ(RecoveredDigests(disk_, kNew, 2, 6), digests);
}

TEST_F(ReshardTest, ASecondCallFindsTheResultOfTheFirst) {
  MakeSmallState(disk_, kOld, 2, 2);
  ASSERT_TRUE(Run(disk_, 6, 3).ok());
  const auto again = Run(disk_, 6, 3);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(Run(disk_, 6, 2).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(ReshardTest, RefusesAFolderThatAServerUses) {
  MakeSmallState(disk_, kOld, 2, 1);
  const auto server = StateFolder::Open(disk_, StateFolderOf(kNew), 1);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(Run(disk_, 6, 2).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ReshardTest, RefusesAFileThatCannotBeTrusted) {
  MakeSmallState(disk_, kOld, 2, 1);
  const std::string data = StateFolderOf(kOld) + "/data/";
  const std::string name = disk_.List(data)->front();
  std::string bytes = ReadWhole(disk_, data + name, 1 << 20).value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_EQ(disk_.Remove(data + name), absl::OkStatus());
  ASSERT_EQ(disk_.Create(data + name).value()->Append(bytes), absl::OkStatus());
  const absl::Status refused = Run(disk_, 6, 2).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(name));
  EXPECT_FALSE(HasCommits(kNew));
  const std::vector<absl::Status> faults = FaultsOf(kOld);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(std::string(faults[0].message()), HasSubstr(name));
}

}  // namespace
}  // namespace cistern::server
