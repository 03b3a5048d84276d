// File systems that break the promises that commits rely on are refused before use.
#include "server/checkpoint/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

// A disk that lets two files take one name, or does not rename.
class LaxFileSystem : public MemoryFileSystem {
 public:
  bool creates_twice = false, publishes_twice = false, keeps_the_old_name = false;

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) override {
    if (creates_twice) Remove(path).IgnoreError();
    return MemoryFileSystem::Create(path);
  }
  absl::Status Publish(const FilePath& from, const FilePath& to) override {
    if (publishes_twice) return Replace(from, to);
    CISTERN_RETURN_IF_ERROR(MemoryFileSystem::Publish(from, to));
    return keeps_the_old_name ? MemoryFileSystem::Create(from).status() : absl::OkStatus();
  }
};

std::string Refusal(LaxFileSystem& disk) {
  const absl::Status refused = StateFolder::Open(disk, "/data/state", 0).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("start without durability"));
  return std::string(refused.message());
}

TEST(StateFolder, RefusesAFileSystemWithoutExclusiveNames) {
  LaxFileSystem creates, publishes, copies;
  creates.creates_twice = true;
  EXPECT_THAT(Refusal(creates), testing::HasSubstr("creates a file that already exists"));
  publishes.publishes_twice = true;
  EXPECT_THAT(Refusal(publishes), testing::HasSubstr("renames a file to a name that is taken"));
  copies.keeps_the_old_name = true;
  EXPECT_THAT(Refusal(copies), testing::HasSubstr("does not rename files"));
}

TEST(StateFolder, TheProbeLeavesNothingAndIsRepeatedAfterACrash) {
  MemoryFileSystem memory;
  FaultFileSystem disk(&memory);
  for (uint64_t call = 1, hits = 1; hits > 0; ++call) {
    disk.FailCall(call, Fault::kInputOutput);
    const absl::Status opened = StateFolder::Open(disk, "/data/state", 0).status();
    hits = disk.hits().size();
    EXPECT_EQ(opened.ok(), hits == 0) << opened;
  }
  EXPECT_EQ(memory.List("/data/state").value(),
            (std::vector<std::string>{"data", "epoch", "lock-0", "manifest"}));
}

// A copy without manifests would start empty and delete the row files.
TEST(StateFolder, AFolderWithoutManifestsIsNotTakenForANewOne) {
  MemoryFileSystem disk;
  ASSERT_TRUE(StateFolder::Open(disk, "/data/state", 0).ok());
  ASSERT_TRUE(disk.Create("/data/state/data/delta-1-1-0").ok());  // of an undecided pass
  ASSERT_TRUE(disk.Create("/data/state/data/base-7-2-0").ok());   // of a killed reshard
  EXPECT_TRUE(StateFolder::Open(disk, "/data/state", 0).ok());
  ASSERT_TRUE(disk.Create("/data/state/data/delta-2-1-1").ok());
  absl::Status refused = StateFolder::Open(disk, "/data/state", 0).status();
  EXPECT_TRUE(absl::IsDataLoss(refused));
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("/data/state: manifest 1 is missing"));
  ASSERT_TRUE(disk.Create("/data/state/manifest/00000000000000000001").ok());
  EXPECT_TRUE(StateFolder::Open(disk, "/data/state", 0).ok());
  ASSERT_TRUE(RemoveTree(disk, "/data/state/manifest").ok());
  refused = StateFolder::Open(disk, "/data/state", 0).status();
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("the folder manifest/ is missing"));
}

constexpr char kManifests[] = "/data/state/manifest/";
constexpr char kClaims[] = "/data/state/epoch/";
constexpr char kRows[] = "/data/state/data/";

// A state with commits `commits`, as far as file names tell.
std::unique_ptr<MemoryFileSystem> DiskWith(const std::vector<uint64_t>& commits) {
  auto disk = std::make_unique<MemoryFileSystem>();
  EXPECT_TRUE(StateFolder::Open(*disk, "/data/state", 0).ok());
  for (const uint64_t commit : commits) {
    EXPECT_TRUE(disk->Create(kManifests + NumberName(commit)).ok());
  }
  return disk;
}

// Writes a file with the contents `bytes`.
void Leave(FileSystem& disk, const std::string& path, const std::string& bytes) {
  const auto file = disk.Create(path);
  ASSERT_EQ(file.status(), absl::OkStatus());
  ASSERT_EQ((*file)->Append(bytes), absl::OkStatus());
  ASSERT_EQ((*file)->Close(), absl::OkStatus());
}

std::string DataLossOf(FileSystem& disk) {
  const absl::Status refused = StateFolder::Open(disk, "/data/state", 0).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  return std::string(refused.message());
}

TEST(StateFolder, NamesAManifestThatDoesNotFollow) {
  EXPECT_TRUE(StateFolder::Open(*DiskWith({7}), "/data/state", 0).ok());
  EXPECT_TRUE(StateFolder::Open(*DiskWith({5, 6, 7}), "/data/state", 0).ok());
  for (const std::vector<uint64_t>& commits :
       {std::vector<uint64_t>{5, 6, UINT64_MAX}, {UINT64_MAX}, {5, 6, 8}, {1, UINT64_MAX - 1}}) {
    EXPECT_THAT(DataLossOf(*DiskWith(commits)),
                testing::AllOf(testing::HasSubstr(NumberName(commits.back())),
                               testing::HasSubstr("move it away")));
  }
}

// A claim and a merge follow a commit. Without its manifest the state would silently go back.
TEST(StateFolder, NoticesThatTheNewestManifestWasRemoved) {
  for (const std::string name : {"base-3-1-0.1001", "delta-4-1-0"}) {
    const auto disk = DiskWith({1, 2, 3});
    ASSERT_TRUE(disk->Create(kRows + name).ok());
    EXPECT_TRUE(StateFolder::Open(*disk, "/data/state", 0).ok());
    ASSERT_TRUE(disk->Remove(kManifests + NumberName(3)).ok());
    EXPECT_THAT(DataLossOf(*disk), testing::AllOf(testing::HasSubstr("manifest 3 is missing"),
                                                  testing::HasSubstr(name)));
  }
  const auto disk = DiskWith({1, 2, 3});
  ASSERT_TRUE(disk->Create(kRows + std::string("base-4-1-0")).ok());  // prepared, not decided
  Leave(*disk, kClaims + NumberName(3), "");                          // by an older version
  Leave(*disk, kClaims + NumberName(4), "commit 9");                  // truncated by a power loss
  EXPECT_TRUE(StateFolder::Open(*disk, "/data/state", 0).ok());
  Leave(*disk, kClaims + NumberName(5), "commit 3\n");
  ASSERT_TRUE(disk->Remove(kManifests + NumberName(3)).ok());
  EXPECT_THAT(DataLossOf(*disk), testing::AllOf(testing::HasSubstr("manifest 3 is missing"),
                                                testing::HasSubstr("epoch/" + NumberName(5)),
                                                testing::HasSubstr(kManifests + NumberName(3))));
}

TEST(StateFolder, AClaimRecordsTheNewestCommit) {
  const auto disk = DiskWith({});
  const auto state = StateFolder::Open(*disk, "/data/state", 0).value();
  ASSERT_EQ(state->CreateTerm(ParseClaim(1, "")), absl::OkStatus());
  EXPECT_EQ(ReadWhole(*disk, kClaims + NumberName(1), 100).value(), "commit 0\n");
}

TEST(StateFolder, TermsKeepGrowingWhenClaimsAreLost) {
  const auto disk = DiskWith({});
  const auto state = StateFolder::Open(*disk, "/data/state", 0).value();
  ASSERT_TRUE(disk->Create(kRows + std::string("delta-1-12-0")).ok());
  ASSERT_TRUE(disk->Create(kRows + std::string("delta-1-18446744073709551615-1")).ok());
  EXPECT_EQ(state->NewestTerm().value(), 12u);
  EXPECT_TRUE(absl::IsAlreadyExists(state->CreateTerm(ParseClaim(12, ""))));
  EXPECT_EQ(state->CreateTerm(ParseClaim(13, "")), absl::OkStatus());
  EXPECT_EQ(state->NewestTerm().value(), 13u);
}

TEST(StateFolder, RefusesTermsThatLeaveNoneToClaim) {
  const auto disk = DiskWith({});
  const auto state = StateFolder::Open(*disk, "/data/state", 0).value();
  for (const Term term : {StateFolder::kMaxTerm + 1, Term{UINT64_MAX}}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(state->CreateTerm(ParseClaim(term, ""))));
  }
  EXPECT_EQ(state->NewestTerm().value(), 0u);
  ASSERT_TRUE(disk->Create(kClaims + NumberName(UINT64_MAX)).ok());
  const absl::Status refused = state->CreateTerm(ParseClaim(1, ""));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("cistern ckpt repair-epochs /data/state"));
}

TEST(StateFolder, NewestAttemptCountsThisServersFilesOnly) {
  MemoryFileSystem disk;
  const auto state = StateFolder::Open(disk, "/data/state", 1).value();
  EXPECT_EQ(state->NewestAttempt(1).value(), 0u);
  for (const char* name : {"base-2-1-1.1001", "base-3-1-1.1002", "delta-3-1-1", "delta-3-1-0.7",
                           "base-9-1-0.1009", "notes.txt"}) {
    ASSERT_TRUE(disk.Create(absl::StrCat("/data/state/data/", name)).ok());
  }
  EXPECT_EQ(state->NewestAttempt(1).value(), 1002u);
  EXPECT_EQ(state->NewestAttempt(0).value(), 1009u);
}

}  // namespace
}  // namespace cistern::server
