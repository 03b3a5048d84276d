#include "common/io/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cistern {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() : path_(absl::StrCat(testing::TempDir(), "/mapped_file_test_", getpid())) {}
  ~MappedFileTest() override { std::filesystem::remove_all(path_); }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  const std::string path_;
};

TEST_F(MappedFileTest, HasTheBytesOfTheFileWithBothKindsOfAccess) {
  const std::string bytes(100'000, 'x');
  Write(bytes + "end");
  for (const auto access : {MappedFile::Access::kForward, MappedFile::Access::kRandom}) {
    const auto file = MappedFile::Open(path_, access).value();
    file->Prefetch();
    EXPECT_EQ(file->bytes(), bytes + "end");
    EXPECT_TRUE(file->StillWhole().ok());
  }
}

TEST_F(MappedFileTest, PrefetchesInPiecesUntilItIsToldToStop) {
  Write(std::string((size_t{9} << 20) + 1, 'x'));
  const auto file = MappedFile::Open(path_).value();
  int pieces = 0;
  file->Prefetch([&] { return ++pieces < 100; });
  EXPECT_EQ(pieces, 3);  // of 4 MiB
  pieces = 0;
  file->Prefetch([&] { return ++pieces < 2; });
  EXPECT_EQ(pieces, 2);
}

TEST_F(MappedFileTest, AnEmptyFileIsEmpty) {
  Write("");
  const auto file = MappedFile::Open(path_).value();
  file->Prefetch();
  EXPECT_EQ(file->bytes(), "");
}

TEST_F(MappedFileTest, NoticesThatTheFileWasCutShort) {
  Write(std::string(9000, 'x'));
  const auto file = MappedFile::Open(path_).value();
  std::filesystem::resize_file(path_, 8999);
  EXPECT_TRUE(absl::IsDataLoss(file->StillWhole()));
}

TEST_F(MappedFileTest, RefusesWhatIsNoFile) {
  EXPECT_TRUE(absl::IsNotFound(MappedFile::Open(path_).status()));
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(absl::IsInvalidArgument(MappedFile::Open(path_).status()));
}

}  // namespace
}  // namespace cistern
