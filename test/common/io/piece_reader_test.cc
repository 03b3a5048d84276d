#include "common/io/piece_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "test/support/temp_folder.h"

namespace cistern {
namespace {

constexpr size_t kPiece = PieceReader::kPieceBytes;

TEST(PieceReader, ReadsAnyPartInAscendingAndOtherOrder) {
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
  PieceReader ascending(file.get(), size), any(file.get(), size), small(file.get(), size, 65536);
  for (size_t at = 0; at < size;) {
    const size_t part = std::min<size_t>(size - at, random() % 200000);
    EXPECT_EQ(ascending.Get(at, part).value(), absl::string_view(bytes).substr(at, part));
    EXPECT_EQ(small.Get(at, part).value(), absl::string_view(bytes).substr(at, part));
    at += part;
    const size_t begin = random() % size, some = random() % (size - begin);
    EXPECT_EQ(any.Get(begin, some).value(), absl::string_view(bytes).substr(begin, some));
  }
}

TEST(PieceReader, NamesATruncatedFile) {
  const TempFolder folder;
  std::filesystem::path path = folder / "f";
  auto written = Disk().Create(path.string()).value();
  ASSERT_EQ(written->Append(RandomBytes(2 * kPiece)), absl::OkStatus());
  ASSERT_EQ(written->Close(), absl::OkStatus());
  const auto file = Disk().Open(path.string()).value();
  std::filesystem::resize_file(path, kPiece + 100);
  PieceReader reader(file.get(), 2 * kPiece);
  EXPECT_EQ(reader.Get(0, 100).status(), absl::OkStatus());
  const absl::Status cut = reader.Get(kPiece, 100).status();
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << cut;
  EXPECT_NE(cut.message().find(path.string() + " ends at byte"), absl::string_view::npos) << cut;
}

}  // namespace
}  // namespace cistern
