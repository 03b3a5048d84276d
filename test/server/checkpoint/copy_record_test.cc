#include "server/checkpoint/copy_record.h"

#include <gtest/gtest.h>

#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

TEST(CopyRecord, KeepsWhatWasWritten) {
  MemoryFileSystem disk;
  ASSERT_EQ(disk.MakeFolders("/state"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(ReadCopyRecord(disk, "/state", kCopiedRecord).status()));
  for (const CopyRecord& record : {CopyRecord{}, CopyRecord{7, {"base-7-1-0", "delta-8-1-0.3"}},
                                   CopyRecord{UINT64_MAX, {"a"}}}) {
    ASSERT_EQ(WriteCopyRecord(disk, "/state", kCopiedRecord, record), absl::OkStatus());
    const absl::StatusOr<CopyRecord> read = ReadCopyRecord(disk, "/state", kCopiedRecord);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->commit, record.commit);
    EXPECT_EQ(read->files, record.files);
  }
}

TEST(CopyRecord, RefusesEverythingElse) {
  for (const char* text :
       {"", "\n", "commit", "commit \n", "commit -1\n", "commit x\n", "commit 1",
        "commit 18446744073709551616\n", "file a\n", "commit 1\nfile\n", "commit 1\nfile ../x\n",
        "commit 1\nfile a/b\n", "commit 1\n\n", "commit 1\nfile a\ncommit 2\n"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseCopyRecord(text).status())) << text;
  }
}

}  // namespace
}  // namespace cistern::server
