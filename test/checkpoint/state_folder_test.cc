// File systems that break the promises that a commit stands on are refused before they are used.
#include "server/checkpoint/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

// A disk that gives names twice, or does not move them.
class LaxFileSystem : public MemoryFileSystem {
 public:
  bool creates_twice = false, publishes_twice = false, keeps_the_old_name = false;

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (creates_twice) Remove(path).IgnoreError();
    return MemoryFileSystem::Create(path);
  }
  absl::Status Publish(const std::string& from, const std::string& to) override {
    if (publishes_twice) return Replace(from, to);
    CISTERN_RETURN_IF_ERROR(MemoryFileSystem::Publish(from, to));
    return keeps_the_old_name ? MemoryFileSystem::Create(from).status() : absl::OkStatus();
  }
};

std::string Refusal(LaxFileSystem& disk) {
  const absl::Status refused = StateFolder::Open(disk, "/data/state", 0).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("--durability=none"));
  return std::string(refused.message());
}

TEST(StateFolder, AFileSystemThatGivesNamesTwiceIsRefused) {
  LaxFileSystem creates, publishes, copies;
  creates.creates_twice = true;
  EXPECT_THAT(Refusal(creates), testing::HasSubstr("creates a file that is there already"));
  publishes.publishes_twice = true;
  EXPECT_THAT(Refusal(publishes), testing::HasSubstr("gives a name that is taken"));
  copies.keeps_the_old_name = true;
  EXPECT_THAT(Refusal(copies), testing::HasSubstr("does not rename files"));
}

TEST(StateFolder, TheTrialLeavesNothingAndIsRepeatedAfterACrash) {
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

// A copy without them would start empty, and take the files away.
TEST(StateFolder, WithoutItsManifestsIsNotANewOne) {
  MemoryFileSystem disk;
  ASSERT_TRUE(StateFolder::Open(disk, "/data/state", 0).ok());
  ASSERT_TRUE(disk.Create("/data/state/data/delta-1-1-0").ok());  // of a pass that nobody decided
  ASSERT_TRUE(disk.Create("/data/state/data/base-7-2-0").ok());   // of a reshard that was killed
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

TEST(StateFolder, TheHighestAttemptIsOfThisServersFiles) {
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
}  // namespace cistern
