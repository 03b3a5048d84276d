// Files of every size around a piece, on file systems that can and cannot go past the page cache.
#include "common/direct_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "common/file.h"
#include "common/piece_reader.h"
#include "test/common/temp_folder.h"

namespace cistern {
namespace {

constexpr size_t kPiece = DirectWriter::kPieceBytes;

std::string RandomBytes(size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Two folders: one on the disk, and one of memory, where there is one.
std::vector<std::string> Folders(const TempFolder& disk) {
  std::vector<std::string> folders = {disk.path()};
  std::string memory = "/dev/shm/cistern-XXXXXX";
  if (mkdtemp(memory.data()) != nullptr) folders.push_back(memory);
  return folders;
}

TEST(DirectWriter, FilesHoldWhatWasAppended) {
  const TempFolder disk;
  for (const std::string& folder : Folders(disk)) {
    for (const size_t size : {size_t{0}, size_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece,
                              3 * kPiece + 4096, 5 * kPiece + 4097}) {
      const std::string bytes = RandomBytes(size), path = folder + "/f";
      auto file = Disk().Create(path).value();
      std::mt19937_64 random(7);
      for (size_t at = 0; at < size;) {
        const size_t part = std::min<size_t>(size - at, random() % (kPiece / 2));
        ASSERT_EQ(file->Append({bytes.data() + at, part}), absl::OkStatus());
        at += part;
      }
      ASSERT_EQ(file->Sync(), absl::OkStatus());
      EXPECT_EQ(ReadBytes(path) == bytes, true) << path << " of " << size << " bytes";
      ASSERT_EQ(file->Close(), absl::OkStatus());
      EXPECT_EQ(std::filesystem::file_size(path), size);
      ASSERT_EQ(Disk().Remove(path), absl::OkStatus());
    }
    if (folder != disk.path()) std::filesystem::remove(folder);
  }
}

TEST(DirectWriter, ASyncedFileGrowsAndItsHeaderChanges) {
  const TempFolder folder;
  std::string bytes = RandomBytes(2 * kPiece + 10);
  auto file = Disk().Create(folder / "f").value();
  ASSERT_EQ(file->Append(bytes), absl::OkStatus());
  ASSERT_EQ(file->WriteAt(kPiece, "header"), absl::OkStatus());
  bytes.replace(kPiece, 6, "header");
  for (const std::string& more : {RandomBytes(3), RandomBytes(2 * kPiece)}) {
    ASSERT_EQ(file->Append(more), absl::OkStatus());
    bytes += more;
    EXPECT_EQ(ReadBytes(folder / "f") == bytes, true);
  }
  ASSERT_EQ(file->Close(), absl::OkStatus());
}

TEST(DirectWriter, OthersSeeAFileThatWillBeReadAsItGrows) {
  const TempFolder folder;
  auto file = Disk().Create(folder / "f").value();
  file->WillBeRead();
  ASSERT_EQ(file->Append("line\n"), absl::OkStatus());
  EXPECT_EQ(ReadBytes(folder / "f"), "line\n");
}

TEST(DirectWriter, AFullDiskIsReportedAtTheLatestByFlush) {
  const FileDescriptor full(open("/dev/full", O_WRONLY));
  ASSERT_TRUE(full.is_open());
  for (const size_t size : {size_t{10}, 3 * kPiece}) {
    DirectWriter writer(full.get(), "/dev/full");
    absl::Status status = writer.Append(RandomBytes(size));
    if (status.ok()) status = writer.Flush();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

TEST(PieceReader, GivesAnyPartInAscendingAndOtherOrder) {
  const TempFolder folder;
  const size_t size = 3 * kPiece + 5000;
  const std::string bytes = RandomBytes(size);
  {
    auto file = Disk().Create(folder / "f").value();
    ASSERT_EQ(file->Append(bytes), absl::OkStatus());
    ASSERT_EQ(file->Close(), absl::OkStatus());
  }
  const auto file = Disk().Open(folder / "f").value();
  std::mt19937_64 random(1);
  PieceReader ascending(file.get(), size), any(file.get(), size);
  for (size_t at = 0; at < size;) {
    const size_t part = std::min<size_t>(size - at, random() % 200000);
    EXPECT_EQ(ascending.Get(at, part).value(), absl::string_view(bytes).substr(at, part));
    at += part;
    const size_t begin = random() % size, some = random() % (size - begin);
    EXPECT_EQ(any.Get(begin, some).value(), absl::string_view(bytes).substr(begin, some));
  }
}

TEST(PieceReader, AFileThatWasCutIsNamed) {
  const TempFolder folder;
  std::filesystem::path path = folder / "f";
  auto written = Disk().Create(path).value();
  ASSERT_EQ(written->Append(RandomBytes(2 * kPiece)), absl::OkStatus());
  ASSERT_EQ(written->Close(), absl::OkStatus());
  const auto file = Disk().Open(path).value();
  std::filesystem::resize_file(path, kPiece + 100);
  PieceReader reader(file.get(), 2 * kPiece);
  EXPECT_EQ(reader.Get(0, 100).status(), absl::OkStatus());
  const absl::Status cut = reader.Get(kPiece, 100).status();
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << cut;
  EXPECT_NE(cut.message().find(path.string() + " ends at byte"), absl::string_view::npos) << cut;
}

}  // namespace
}  // namespace cistern
