#include "common/io/file_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace cistern {
namespace {

// A file that counts the requests and bytes it is asked for.
class CountingFile : public ReadableFile {
 public:
  explicit CountingFile(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t bytes() const override { return bytes_.size(); }
  absl::Status Read(uint64_t offset, size_t size, char* out) const override {
    if (offset + size > bytes_.size()) return absl::DataLossError("ends earlier");
    ++requests;
    bytes_read += size;
    std::copy_n(bytes_.data() + offset, size, out);
    return absl::OkStatus();
  }

  mutable int requests = 0;
  mutable size_t bytes_read = 0;

 private:
  const std::string bytes_;
};

std::string SeededBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, 0);
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(FileReads, PiecesOfSeveralFilesAreWhatTheFilesHold) {
  const std::vector<std::string> contents = {SeededBytes(3000000, 1), SeededBytes(500001, 2)};
  const CountingFile files[] = {CountingFile(contents[0]), CountingFile(contents[1])};
  std::mt19937_64 random(3);
  FileReads reads(size_t{1} << 20);
  for (int round = 0; round < 50; ++round) {
    reads.Clear();
    struct Piece {
      size_t file, offset, size, place;
    };
    std::vector<Piece> pieces;
    while (true) {
      // Any order, and overlaps.
      const size_t file = random() % 2;
      const size_t offset = random() % (contents[file].size() - 1);
      const size_t size = 1 + random() % std::min<size_t>(9000, contents[file].size() - offset);
      const auto place = reads.Add(files[file], offset, size);
      if (!place.has_value()) break;
      pieces.push_back({file, offset, size, *place});
    }
    ASSERT_GT(pieces.size(), 50u);
    ASSERT_EQ(reads.Read(), absl::OkStatus());
    for (const Piece& piece : pieces) {
      ASSERT_EQ(std::string(reads.data(piece.place), piece.size),
                contents[piece.file].substr(piece.offset, piece.size));
    }
  }
}

TEST(FileReads, NeighboursShareARequest) {
  const CountingFile file(SeededBytes(2000000, 1));
  FileReads reads(size_t{1} << 20);
  // Six pages between them are read over, seven are not.
  constexpr size_t kPage = AlignedBuffer::kAlignment;
  ASSERT_TRUE(reads.Add(file, 10, 20).has_value());
  ASSERT_TRUE(reads.Add(file, 7 * kPage, 20).has_value());
  ASSERT_TRUE(reads.Add(file, 15 * kPage, 20).has_value());
  // Before the newest request.
  ASSERT_TRUE(reads.Add(file, 14 * kPage, 20).has_value());
  ASSERT_EQ(reads.Read(), absl::OkStatus());
  EXPECT_EQ(file.requests, 3);
  EXPECT_EQ(file.bytes_read, 10 * kPage);
}

TEST(FileReads, ThereIsRoomForOnePieceAlways) {
  const std::string bytes = SeededBytes(400000, 1);
  const CountingFile file(bytes);
  FileReads reads(100000);
  const auto place = reads.Add(file, 1, 390000);
  ASSERT_TRUE(place.has_value());
  EXPECT_FALSE(reads.Add(file, 395000, 4000).has_value());
  ASSERT_EQ(reads.Read(), absl::OkStatus());
  EXPECT_EQ(std::string(reads.data(*place), 390000), bytes.substr(1, 390000));
}

TEST(FileReads, NothingIsReadWithoutPieces) {
  FileReads reads(100);
  EXPECT_EQ(reads.Read(), absl::OkStatus());
}

TEST(FileReads, AnErrorIsThatOfTheFile) {
  class Broken : public CountingFile {
   public:
    using CountingFile::CountingFile;
    absl::Status ReadMany(absl::Span<const ReadRequest>) const override {
      return absl::DataLossError("worn out");
    }
  };
  const CountingFile good(SeededBytes(10000, 1));
  const Broken broken(SeededBytes(10000, 1));
  FileReads reads(100000);
  ASSERT_TRUE(reads.Add(good, 0, 10).has_value());
  ASSERT_TRUE(reads.Add(broken, 0, 10).has_value());
  EXPECT_EQ(reads.Read(), absl::DataLossError("worn out"));
}

}  // namespace
}  // namespace cistern
