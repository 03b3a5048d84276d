#include "worker/export/xbox/donefile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io/new_file.h"
#include "test/support/memory_file_system.h"
#include "test/worker/export/xbox/last_done.h"

namespace cistern {
namespace {

constexpr char kDonefile[] = "out/donefile/base.txt";

absl::Status AppendDone(FileSystem& files, const DoneLine& line) {
  CISTERN_ASSIGN_OR_RETURN(std::string text, ReadDonefile(files, kDonefile));
  CISTERN_RETURN_IF_ERROR(AppendLine(line, &text));
  return WriteWhole(files, kDonefile, text);
}

void Put(FileSystem& files, const std::string& text) {
  ASSERT_TRUE(files.MakeFolders("out/donefile").ok());
  auto file = files.Create(kDonefile).value();
  ASSERT_TRUE(file->Append(text).ok() && file->Sync().ok() && file->Close().ok());
}

TEST(Donefile, LinesAreThoseOfPaddleServing) {
  MemoryFileSystem files;
  EXPECT_FALSE(LastDone(files, kDonefile).value().has_value());
  ASSERT_TRUE(AppendDone(files, {1700000000, 1700000000, "/x/1700000000/base"}).ok());
  ASSERT_TRUE(AppendDone(files, {1700000009, 1700000000, "/x/\"a\"/base"}).ok());
  EXPECT_EQ(ReadWhole(files, kDonefile, 1000).value(),
            "{\"id\":\"1700000000\",\"key\":\"1700000000\",\"input\":\"/x/1700000000/base\"}\n"
            "{\"id\":\"1700000009\",\"key\":\"1700000000\",\"input\":\"/x/\\\"a\\\"/base\"}\n");
  const DoneLine last = *LastDone(files, kDonefile).value();
  EXPECT_EQ(last.id, 1700000009u);
  EXPECT_EQ(last.key, 1700000000u);
  EXPECT_EQ(last.input, "/x/\"a\"/base");
}

TEST(Donefile, ALineWithoutItsEndIsKept) {
  MemoryFileSystem files;
  Put(files, "{\"id\":\"1\",\"key\":\"1\",\"input\":\"/a\"}");
  ASSERT_TRUE(AppendDone(files, {2, 2, "/b"}).ok());
  EXPECT_EQ(ReadWhole(files, kDonefile, 1000).value(),
            "{\"id\":\"1\",\"key\":\"1\",\"input\":\"/a\"}\n"
            "{\"id\":\"2\",\"key\":\"2\",\"input\":\"/b\"}\n");
}

TEST(Donefile, AMalformedLastLineIsAnError) {
  for (const std::string line :
       {"x", "{}", "7", "{\"id\":1,\"key\":\"1\",\"input\":\"/a\"}",
        "{\"id\":\"-1\",\"key\":\"1\",\"input\":\"/a\"}",
        "{\"id\":\"1\",\"key\":\"1\",\"input\":1}",
        "{\"id\":\"9223372036854775807\",\"key\":\"1\",\"input\":\"/a\"}"}) {
    MemoryFileSystem files;
    Put(files, "{\"id\":\"1\",\"key\":\"1\",\"input\":\"/a\"}\n" + line + "\n");
    const absl::Status status = LastDone(files, kDonefile).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << line;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(kDonefile));
  }
}

TEST(Donefile, AFolderThatIsNotUtf8IsRefused) {
  MemoryFileSystem files;
  EXPECT_EQ(AppendDone(files, {1, 1, "/\xff/base"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(files.Exists(kDonefile).value());
}

}  // namespace
}  // namespace cistern
