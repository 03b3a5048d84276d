// Files of every size around a piece, on file systems with and without O_DIRECT.
#include "common/io/direct_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "common/io/file.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

constexpr size_t kWrittenPiece = DirectWriter::kPieceBytes;

// On a disk, and on tmpfs, which cannot bypass the page cache.
TEST(DirectWriter, FilesHoldTheAppendedBytes) {
  const std::string memory = "/dev/shm/";
  for (const std::string& parent : {testing::TempDir(), memory}) {
    if (parent == memory && access(memory.c_str(), W_OK) != 0) continue;
    const TempFolder folder(parent);
    for (const size_t size :
         {size_t{0}, size_t{1}, kWrittenPiece - 1, kWrittenPiece, kWrittenPiece + 1,
          2 * kWrittenPiece, 3 * kWrittenPiece + 4096, 5 * kWrittenPiece + 4097}) {
      const std::string bytes = RandomBytes(size), path = folder / "f";
      auto file = Disk().Create(path).value();
      std::mt19937_64 random(7);
      for (size_t at = 0; at < size;) {
        const size_t part = std::min<size_t>(size - at, random() % (kWrittenPiece / 2));
        ASSERT_EQ(file->Append({bytes.data() + at, part}), absl::OkStatus());
        at += part;
      }
      ASSERT_EQ(file->Sync(), absl::OkStatus());
      EXPECT_EQ(ReadBytes(path) == bytes, true) << path << " of " << size << " bytes";
      ASSERT_EQ(file->Close(), absl::OkStatus());
      EXPECT_EQ(std::filesystem::file_size(path), size);
      ASSERT_EQ(Disk().Remove(path), absl::OkStatus());
    }
  }
}

TEST(DirectWriter, SyncedFileCanGrowAndItsHeaderCanChange) {
  const TempFolder folder;
  std::string bytes = RandomBytes(2 * kWrittenPiece + 10);
  auto file = Disk().Create(folder / "f").value();
  ASSERT_EQ(file->Append(bytes), absl::OkStatus());
  ASSERT_EQ(file->WriteAt(kWrittenPiece, "header"), absl::OkStatus());
  bytes.replace(kWrittenPiece, 6, "header");
  for (const std::string& more : {RandomBytes(3), RandomBytes(2 * kWrittenPiece)}) {
    ASSERT_EQ(file->Append(more), absl::OkStatus());
    bytes += more;
    EXPECT_EQ(ReadBytes(folder / "f") == bytes, true);
  }
  ASSERT_EQ(file->Close(), absl::OkStatus());
}

TEST(DirectWriter, ReadersSeeAFileGrowAfterWillBeRead) {
  const TempFolder folder;
  auto file = Disk().Create(folder / "f").value();
  file->WillBeRead();
  ASSERT_EQ(file->Append("line\n"), absl::OkStatus());
  EXPECT_EQ(ReadBytes(folder / "f"), "line\n");
}

TEST(DirectWriter, FullDiskIsReportedByFlushAtTheLatest) {
  const FileDescriptor full(open("/dev/full", O_WRONLY));
  ASSERT_TRUE(full.is_open());
  for (const size_t size : {size_t{10}, 3 * kWrittenPiece}) {
    DirectWriter writer(full.get(), "/dev/full");
    absl::Status status = writer.Append(RandomBytes(size));
    if (status.ok()) status = writer.Flush();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

}  // namespace
}  // namespace cistern
