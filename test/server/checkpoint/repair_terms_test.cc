// A fleet from which one claim has locked out all writers, and its repair.
#include "server/checkpoint/repair_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/checkpoint/small_state.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

constexpr char kState[] = "/data/state";

std::string Claim(Term term) {
  return absl::StrCat(kState, "/epoch/", NumberName(term));
}

TEST(RepairTerms, AFleetWithoutATermLeftBecomesWritableAgain) {
  MemoryFileSystem disk;
  const std::vector<uint64_t> digests = MakeSmallState(disk, "/data", 2, 2);
  const Term before = StateFolder::OpenToRead(disk, kState).value()->NewestTerm().value();
  ASSERT_TRUE(disk.Create(Claim(UINT64_MAX)).ok());
  ASSERT_TRUE(disk.Create(Claim(StateFolder::kMaxTerm)).ok());
  ServerOptions options;
  options.files = &disk;
  options.data_dir = "/data";
  options.shard_num = 8;
  {
    RestartableFleet fleet(2, options);
    const absl::Status refused = Connected(fleet.Links())->ClaimTerm();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(std::string(refused.message()),
                testing::HasSubstr("cistern ckpt repair-epochs /data/state"));
    EXPECT_TRUE(absl::IsFailedPrecondition(RepairTerms(disk, kState).status()));  // in use
  }
  const absl::StatusOr<RepairedTerms> repaired = RepairTerms(disk, kState);
  ASSERT_EQ(repaired.status(), absl::OkStatus());
  EXPECT_THAT(repaired->removed, testing::ElementsAre(StateFolder::kMaxTerm, UINT64_MAX));
  EXPECT_EQ(repaired->newest, before + 1);
  EXPECT_EQ(RecoveredDigests(disk, "/data", 2, 8), digests);
  RestartableFleet fleet(2, options);
  auto client = Writer(fleet.Links());
  EXPECT_EQ(CommitRound(*client, 3), absl::OkStatus());
}

TEST(RepairTerms, AnIntactFolderStaysUnchanged) {
  MemoryFileSystem disk;
  MakeSmallState(disk, "/data", 2, 1);
  const std::vector<std::string> claims = disk.List("/data/state/epoch").value();
  const absl::StatusOr<RepairedTerms> repaired = RepairTerms(disk, kState);
  ASSERT_EQ(repaired.status(), absl::OkStatus());
  EXPECT_TRUE(repaired->removed.empty());
  EXPECT_EQ(disk.List("/data/state/epoch").value(), claims);
  EXPECT_TRUE(absl::IsNotFound(RepairTerms(disk, "/data").status()));
}

// After a crash at any call, a repeated run repairs what is left of the epoch folder.
TEST(RepairTerms, CanBeRepeatedAfterACrashAtAnyCall) {
  MemoryFileSystem disk;
  MakeSmallState(disk, "/data", 1, 1);
  const Term before = StateFolder::OpenToRead(disk, kState).value()->NewestTerm().value();
  ASSERT_TRUE(disk.Create(Claim(UINT64_MAX)).ok());
  const size_t begin = disk.operation_num();
  ASSERT_EQ(RepairTerms(disk, kState).status(), absl::OkStatus());
  for (size_t prefix = begin; prefix <= disk.operation_num(); ++prefix) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto lost = disk.Crash(prefix, MemoryFileSystem::Loss::kWeak, seed);
      const absl::StatusOr<RepairedTerms> repaired = RepairTerms(*lost, kState);
      ASSERT_EQ(repaired.status(), absl::OkStatus());
      EXPECT_GE(repaired->newest, before);
      EXPECT_LT(repaired->newest, StateFolder::kMaxTerm);
    }
  }
}

}  // namespace
}  // namespace cistern::server
