#include "worker/data/feed/folder_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "test/worker/data/feed/number_files.h"
#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Keys = std::vector<Key>;

// A growing folder, and a reader of its single partition.
class FolderFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.folder = scratch_.Path("in");
    options_.open = OpenNumbers;
    options_.look_seconds = 0;
    options_.status = &status_;
    std::filesystem::create_directories(options_.folder);
  }
  void Write(const std::string& name, const std::string& lines) {
    scratch_.Write("in/" + name, lines);
  }
  std::unique_ptr<FeedPartition> Open(const std::string& place = "", size_t i = 0) {
    auto source = OpenFolderFeed(options_);
    EXPECT_TRUE(source.ok()) << source.status();
    auto partition = (*source)->Open(i, place);
    EXPECT_TRUE(partition.ok()) << partition.status();
    return *std::move(partition);
  }
  absl::Status OpenError(const std::string& place) {
    return OpenFolderFeed(options_).value()->Open(0, place).status();
  }
  // Reads until there is nothing now.
  static Keys ReadAll(FeedPartition& partition, size_t most = 1000) {
    SampleBlock block = NumberBlock();
    while (block.size < most) {
      const auto got = partition.Read(most - block.size, &block);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok() || *got == 0) break;
    }
    return block.sparse[0].keys;
  }

  Scratch scratch_;
  FolderFeedOptions options_;
  FeedStatus status_;
};

TEST_F(FolderFeedTest, ReadsFilesOnceInTheOrderOfTheirNames) {
  Write("b", "3\n4\n");
  Write("a/x", "1\n2\n");
  const auto partition = Open();
  EXPECT_THAT(ReadAll(*partition), ElementsAre(1, 2, 3, 4));
  Write("c", "5\n");
  EXPECT_THAT(ReadAll(*partition), ElementsAre(5));
  EXPECT_THAT(ReadAll(*partition), ElementsAre());
}

TEST_F(FolderFeedTest, ReadsAFileThatComesAfterLaterNames) {
  Write("c", "3\n");
  const auto partition = Open();
  EXPECT_THAT(ReadAll(*partition), ElementsAre(3));
  Write("a", "1\n");
  EXPECT_THAT(ReadAll(*partition), ElementsAre(1));
  const auto resumed = Open(partition->place());
  Write("b", "2\n");
  EXPECT_THAT(ReadAll(*resumed), ElementsAre(2));
}

TEST_F(FolderFeedTest, ContinuesInsideAFile) {
  Write("a", "1\n2\n3\n");
  Write("b", "4\n");
  const auto partition = Open();
  SampleBlock block = NumberBlock();
  ASSERT_EQ(*partition->Read(2, &block), 2u);
  EXPECT_THAT(ReadAll(*Open(partition->place())), ElementsAre(3, 4));
  ASSERT_EQ(*partition->Read(1, &block), 1u);
  std::filesystem::remove(scratch_.Path("in/a"));  // which is read
  EXPECT_THAT(ReadAll(*Open(partition->place())), ElementsAre(4));
}

TEST_F(FolderFeedTest, LeavesUnfinishedNamesAlone) {
  for (const char* name : {".hidden", "_SUCCESS", "_temporary/0", "x.tmp", "x.part", "x.crc"}) {
    Write(name, "1\n");
  }
  Write("empty", "");
  EXPECT_THAT(ReadAll(*Open()), ElementsAre());
}

TEST_F(FolderFeedTest, WaitsForTheMarkerOrTheAge) {
  Write("day/x", "1\n");
  options_.completes = FileCompletes::kByMarker;
  const auto marked = Open();
  EXPECT_THAT(ReadAll(*marked), ElementsAre());
  Write("day/_SUCCESS", "");
  EXPECT_THAT(ReadAll(*marked), ElementsAre(1));

  options_.completes = FileCompletes::kByAge;
  options_.age_seconds = 3600;
  const auto aged = Open();
  EXPECT_THAT(ReadAll(*aged), ElementsAre());
  std::filesystem::last_write_time(
      scratch_.Path("in/day/x"),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_THAT(ReadAll(*aged), ElementsAre(1));
}

TEST_F(FolderFeedTest, ReadsARangeAgainAlthoughOtherFilesCame) {
  Write("b", "1\n2\n3\n");
  Write("d", "4\n5\n");
  const auto partition = Open();
  SampleBlock block = NumberBlock();
  ASSERT_EQ(*partition->Read(1, &block), 1u);
  partition->TakeRange();
  const std::string place = partition->place();
  ASSERT_EQ(*partition->Read(3, &block), 3u);
  const std::string range = partition->TakeRange();
  Write("a", "7\n");
  Write("c", "8\n");

  const auto again = Open(place);
  SampleBlock repeated = NumberBlock();
  const absl::Status read = again->ReadRange(range, &repeated);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_THAT(repeated.sparse[0].keys, ElementsAre(2, 3, 4));
  EXPECT_EQ(again->place(), partition->place());
  EXPECT_THAT(ReadAll(*again), ElementsAre(5, 7, 8));
}

TEST_F(FolderFeedTest, RefusesAFileThatChanged) {
  Write("a", "1\n2\n3\n");
  const auto partition = Open();
  SampleBlock block = NumberBlock();
  ASSERT_EQ(*partition->Read(2, &block), 2u);
  const std::string place = partition->place();
  Write("a", "1\n2\n3\n4\n");
  EXPECT_THAT(OpenError(place).message(), HasSubstr("holds 8 bytes, but held 6"));
  std::filesystem::remove(scratch_.Path("in/a"));
  EXPECT_THAT(OpenError(place).message(), HasSubstr("partly read"));
}

TEST_F(FolderFeedTest, RefusesAFileThatGrowsWhileItIsRead) {
  Write("a", "1\n2\n");
  const auto partition = Open();
  SampleBlock block = NumberBlock();
  ASSERT_EQ(*partition->Read(1, &block), 1u);
  std::ofstream(scratch_.Path("in/a"), std::ios::app) << "3\n";
  absl::StatusOr<size_t> got = 1;
  while (got.ok() && *got > 0) got = partition->Read(1, &block);
  EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
  EXPECT_THAT(got.status().message(), HasSubstr("grew from 4 to 6 bytes"));
}

TEST_F(FolderFeedTest, LeavesOutTheRestOfABadFileOnlyIfAsked) {
  Write("a", "1\nbad\n2\n");
  Write("b", "3\n");
  SampleBlock block = NumberBlock();
  EXPECT_TRUE(absl::IsDataLoss(Open()->Read(10, &block).status()));
  std::vector<std::string> skipped;
  options_.skips = [&](const std::string& path, const absl::Status&) {
    skipped.push_back(path);
    return true;
  };
  const auto partition = Open();
  EXPECT_THAT(ReadAll(*partition), ElementsAre(1, 3));
  EXPECT_THAT(skipped, ElementsAre(scratch_.Path("in/a")));
  EXPECT_THAT(ReadAll(*Open(partition->place())), ElementsAre());
}

TEST_F(FolderFeedTest, RefusesTextsThatAreNoPlaces) {
  for (const char* place :
       {"x", "[]", "{}", R"({"through":1,"read":[]})", R"({"through":"","read":[1]})",
        R"({"through":"","read":[],"file":"a"})", R"({"through":"","read":{}})",
        R"({"through":"","read":[],"file":"a","row":-1,"bytes":2})"}) {
    EXPECT_TRUE(absl::IsDataLoss(OpenError(place))) << place;
  }
  Write("a", "1\n");
  SampleBlock block = NumberBlock();
  for (const char* range :
       {"x", "{}", R"({"files":[1]})", R"({"files":[["a",0]]})", R"({"files":[["a",0,5]]})",
        R"({"files":[["b",0,1]]})", R"({"files":[["a",2,1]]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(Open()->ReadRange(range, &block))) << range;
  }
}

TEST_F(FolderFeedTest, DividesFilesAmongPartitions) {
  Keys all;
  for (int i = 0; i < 40; ++i) {
    Write("f" + std::to_string(i), std::to_string(i) + "\n");
    all.push_back(static_cast<Key>(i));
  }
  options_.partitions = 3;
  Keys read;
  for (size_t i = 0; i < 3; ++i) {
    const Keys part = ReadAll(*Open("", i));
    EXPECT_GT(part.size(), 5u);
    read.insert(read.end(), part.begin(), part.end());
  }
  EXPECT_THAT(read, testing::UnorderedElementsAreArray(all));
}

TEST_F(FolderFeedTest, ReportsFilesThatComeFarTooLate) {
  char name[16];
  for (size_t i = 0; i < kRecentFiles + 2; ++i) {
    std::snprintf(name, sizeof(name), "f%05zu", i);
    Write(name, "1\n");
  }
  const auto partition = Open();
  EXPECT_EQ(ReadAll(*partition, 5000).size(), kRecentFiles + 2);
  Write("f00000a", "2\n");
  Write("f00002a", "3\n");
  EXPECT_THAT(ReadAll(*partition), ElementsAre(3));
  EXPECT_THAT(status_.TakeNotes(), ElementsAre(HasSubstr("f00000a: came too late")));
}

// Random histories: files appear in any order, readers stop at any place and continue from it.
TEST_F(FolderFeedTest, ReadsEverySampleOnceInRandomHistories) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::filesystem::remove_all(options_.folder);
    std::filesystem::create_directories(options_.folder);
    Keys written, read;
    std::string place;
    for (int life = 0; life < 6; ++life) {
      for (size_t n = random() % 4; n > 0; --n) {
        std::string lines;
        for (size_t k = random() % 5; k > 0; --k) {
          written.push_back(written.size() + 1);
          lines += std::to_string(written.back()) + "\n";
        }
        Write("f" + std::to_string(random()), lines);
      }
      const auto partition = Open(place);
      SampleBlock block = NumberBlock();
      for (size_t n = random() % 4; n > 0; --n) {
        ASSERT_TRUE(partition->Read(1 + random() % 4, &block).ok());
      }
      read.insert(read.end(), block.sparse[0].keys.begin(), block.sparse[0].keys.end());
      place = partition->place();
    }
    const Keys rest = ReadAll(*Open(place));
    read.insert(read.end(), rest.begin(), rest.end());
    EXPECT_THAT(read, testing::UnorderedElementsAreArray(written)) << "seed " << seed;
  }
}

TEST_F(FolderFeedTest, RefusesAFolderThatIsNotThere) {
  options_.folder = scratch_.Path("none");
  EXPECT_TRUE(absl::IsInvalidArgument(OpenFolderFeed(options_).status()));
}

}  // namespace
}  // namespace cistern::data
