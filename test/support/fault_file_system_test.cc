#include "test/support/fault_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

// Makes every call once; returns the first error.
absl::Status UseEverything(FileSystem& files) {
  CISTERN_RETURN_IF_ERROR(files.MakeFolders("t"));
  CISTERN_ASSIGN_OR_RETURN(const auto lock, files.Lock("t/lock"));
  CISTERN_ASSIGN_OR_RETURN(const auto file, files.Create("t/a"));
  CISTERN_RETURN_IF_ERROR(file->Append("1234"));
  CISTERN_RETURN_IF_ERROR(file->Sync());
  CISTERN_RETURN_IF_ERROR(file->Close());
  CISTERN_RETURN_IF_ERROR(files.Publish("t/a", "t/b"));
  CISTERN_RETURN_IF_ERROR(files.Replace("t/b", "t/c"));
  CISTERN_RETURN_IF_ERROR(files.SyncFolder("t"));
  CISTERN_RETURN_IF_ERROR(ReadWhole(files, "t/c", 10).status());  // open, read
  CISTERN_RETURN_IF_ERROR(files.List("t").status());
  CISTERN_RETURN_IF_ERROR(files.Exists("t/c").status());
  return files.Remove("t/c");
}

constexpr uint64_t kCalls = 14;

TEST(Faults, CanFailEachCallOnce) {
  for (const Fault fault :
       {Fault::kNoSpace, Fault::kInputOutput, Fault::kShortWrite, Fault::kLostReply}) {
    std::set<std::string> hits;
    for (uint64_t n = 1; n <= kCalls; ++n) {
      MemoryFileSystem memory;
      FaultFileSystem files(&memory);
      files.FailCall(n, fault);
      const absl::Status status = UseEverything(files);
      EXPECT_EQ(status.code(), fault == Fault::kNoSpace || (fault == Fault::kShortWrite && n == 4)
                                   ? Code::kResourceExhausted
                                   : Code::kInternal)
          << n << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(" t"));
      ASSERT_EQ(files.hits().size(), 1u) << n;
      hits.insert(files.hits()[0]);
    }
    EXPECT_EQ(hits.size(), kCalls);
    MemoryFileSystem memory;
    FaultFileSystem files(&memory);
    files.FailCall(kCalls + 1, fault);
    EXPECT_TRUE(UseEverything(files).ok());
    EXPECT_EQ(files.calls(), kCalls);
    EXPECT_THAT(files.hits(), IsEmpty());
  }
}

TEST(Faults, ErrorOfAFileIsSticky) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kShortWrite, Fault::kLostReply}) {
    MemoryFileSystem memory;
    FaultFileSystem files(&memory);
    const auto file = files.Create("a").value();
    files.FailCall(1, fault);
    const absl::Status status = file->Append("1234");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(file->Append("5"), status);
    EXPECT_EQ(file->Sync(), status);
    EXPECT_EQ(file->Close(), status);
    const std::string left = fault == Fault::kNoSpace      ? ""
                             : fault == Fault::kShortWrite ? "12"
                                                           : "1234";
    EXPECT_EQ(ReadWhole(memory, "a", 10).value(), left);
    EXPECT_THAT(files.hits(), ElementsAre("append 4 bytes to a"));
  }
}

TEST(Faults, CallWithLostReplyTakesEffect) {
  MemoryFileSystem memory;
  FaultFileSystem files(&memory);
  memory.Put("a", "1");
  files.FailCall(1, Fault::kLostReply);
  EXPECT_EQ(files.Publish("a", "b").code(), Code::kInternal);
  EXPECT_TRUE(memory.Exists("b").value());
  EXPECT_FALSE(memory.Exists("a").value());
}

TEST(Faults, LastForTheRequestedNumberOfCalls) {
  MemoryFileSystem memory;
  FaultFileSystem files(&memory);
  files.FailCall(2, Fault::kNoSpace, 2);
  EXPECT_TRUE(files.Exists("a").ok());
  EXPECT_FALSE(files.Exists("a").ok());
  EXPECT_FALSE(files.Exists("a").ok());
  EXPECT_TRUE(files.Exists("a").ok());
  files.FailCall(1, Fault::kNoSpace, UINT64_MAX);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(files.Exists("a").ok());
  files.FailNothing();
  EXPECT_TRUE(files.Exists("a").ok());
}

TEST(Faults, RandomFaultsDependOnTheSeedOnly) {
  MemoryFileSystem memory;
  FaultFileSystem files(&memory);
  std::vector<bool> drawn[2];
  for (std::vector<bool>& failed : drawn) {
    files.FailSome(7, 32, Fault::kInputOutput);
    for (int i = 0; i < 3200; ++i) failed.push_back(!files.Exists("a").ok());
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_GT(files.hits().size(), 60u);
  EXPECT_LT(files.hits().size(), 150u);
}

}  // namespace
}  // namespace cistern
