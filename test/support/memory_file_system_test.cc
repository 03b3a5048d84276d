// Tests of what a crash leaves on the disk in memory.
#include "test/support/memory_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Loss = MemoryFileSystem::Loss;
using Content = std::map<std::string, std::string>;

void Append(WritableFile& file, const std::string& bytes) {
  ASSERT_TRUE(file.Append(bytes).ok());
}

void Write(MemoryFileSystem& files, const std::string& path, const std::string& bytes, bool sync) {
  const auto file = files.Create(path).value();
  Append(*file, bytes);
  ASSERT_TRUE((sync ? file->Sync() : absl::OkStatus()).ok());
  ASSERT_TRUE(file->Close().ok());
}

// The files of one folder.
Content ContentOf(FileSystem& files, const std::string& folder = "") {
  Content content;
  const std::vector<std::string> names = files.List(folder).value();
  for (const std::string& name : names) {
    const auto bytes = ReadWhole(files, absl::StrCat(folder, "/", name), 1 << 20);
    content[name] = bytes.ok() ? *bytes : "(folder)";
  }
  return content;
}

// All results of `loss` over many seeds.
std::set<Content> Outcomes(const MemoryFileSystem& files, Loss loss, size_t prefix) {
  std::set<Content> outcomes;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    outcomes.insert(ContentOf(*files.Crash(prefix, loss, seed)));
  }
  return outcomes;
}

std::set<Content> Outcomes(const MemoryFileSystem& files, Loss loss) {
  return Outcomes(files, loss, files.operation_num());
}

TEST(Crash, OfTheProcessKeepsAllOperations) {
  MemoryFileSystem files;
  Write(files, "a", "12", false);
  ASSERT_TRUE(files.Replace("a", "b").ok());
  ASSERT_EQ(files.operation_num(), 3u);
  EXPECT_THAT(Outcomes(files, Loss::kKill, 0), ElementsAre(Content{}));
  EXPECT_THAT(Outcomes(files, Loss::kKill, 1), ElementsAre(Content{{"a", ""}}));
  EXPECT_THAT(Outcomes(files, Loss::kKill, 2), ElementsAre(Content{{"a", "12"}}));
  EXPECT_THAT(Outcomes(files, Loss::kKill, 3), ElementsAre(Content{{"b", "12"}}));
  EXPECT_EQ(files.Operation(1), "append 2 bytes to a");
  EXPECT_EQ(files.Operation(2), "rename a to b");
}

TEST(Crash, KeepsSyncedBytesAndNames) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeFolders("t").ok());
  Write(files, "t/a", "12", true);
  ASSERT_TRUE(files.SyncFolder("t").ok());
  for (const Loss loss : {Loss::kOrdered, Loss::kWeak}) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const auto disk = files.Crash(files.operation_num(), loss, seed);
      EXPECT_THAT(ContentOf(*disk, "t"), ElementsAre(Pair("a", "12")));
    }
  }
}

TEST(Crash, OrderedLosesTheLastOperations) {
  MemoryFileSystem files;
  Write(files, "a", "12", false);
  Write(files, "b", "3", false);
  EXPECT_THAT(
      Outcomes(files, Loss::kOrdered),
      UnorderedElementsAre(Content{}, Content{{"a", ""}}, Content{{"a", "1"}}, Content{{"a", "12"}},
                           Content{{"a", "12"}, {"b", ""}}, Content{{"a", "12"}, {"b", "3"}}));
}

TEST(Crash, WeakLosesNamesAndBytesIndependently) {
  MemoryFileSystem files;
  Write(files, "a", "12", false);
  EXPECT_THAT(Outcomes(files, Loss::kWeak),
              UnorderedElementsAre(Content{}, Content{{"a", ""}}, Content{{"a", "1"}},
                                   Content{{"a", "12"}}, Content{{"a", std::string("1\0", 2)}},
                                   Content{{"a", std::string("\0\0", 2)}}));
}

// The classic bug: a rename of a file that was never synced.
TEST(Crash, WeakMayKeepARenameWithoutTheBytes) {
  MemoryFileSystem files;
  files.Put("a", "old");
  Write(files, "new", "2", false);
  ASSERT_TRUE(files.Replace("new", "a").ok());
  const std::set<Content> outcomes = Outcomes(files, Loss::kWeak);
  EXPECT_EQ(outcomes.count(Content{{"a", ""}}), 1u);
  EXPECT_EQ(outcomes.count(Content{{"a", std::string("\0", 1)}}), 1u);
  EXPECT_EQ(outcomes.count(Content{{"a", "old"}}), 1u);
  EXPECT_EQ(outcomes.count(Content{{"a", "old"}, {"new", "2"}}), 1u);
  EXPECT_EQ(outcomes.count(Content{{"a", "2"}, {"new", "2"}}), 1u);
  for (const Content& content : outcomes) EXPECT_EQ(content.count("a"), 1u);
  EXPECT_EQ(Outcomes(files, Loss::kOrdered).count(Content{{"a", ""}}), 0u);
}

TEST(Crash, FirstSeedsOfWeakAreTheExtremes) {
  MemoryFileSystem files;
  Write(files, "a", "12", false);
  Write(files, "b", "3", true);
  const auto disk = [&](uint64_t seed) {
    return ContentOf(*files.Crash(files.operation_num(), Loss::kWeak, seed));
  };
  EXPECT_EQ(disk(0), (Content{}));
  EXPECT_EQ(disk(1), (Content{{"a", ""}, {"b", "3"}}));
  EXPECT_EQ(disk(2), (Content{}));
  EXPECT_EQ(disk(3), (Content{{"a", std::string(2, '\0')}, {"b", "3"}}));
}

TEST(Crash, RemovedFileReappearsIfItsFolderWasNotSynced) {
  MemoryFileSystem files;
  files.Put("t/a", "12");
  ASSERT_TRUE(files.Remove("t/a").ok());
  EXPECT_EQ(ContentOf(*files.Crash(1, Loss::kWeak, 0), "t"), (Content{{"a", "12"}}));
  ASSERT_TRUE(files.SyncFolder("t").ok());
  EXPECT_EQ(ContentOf(*files.Crash(2, Loss::kWeak, 0), "t"), (Content{}));
}

TEST(Crash, SyncCoversOnlyItsOwnFileOrFolder) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeFolders("t").ok());
  Write(files, "t/a", "1", true);
  Write(files, "t/b", "2", false);
  ASSERT_TRUE(files.SyncFolder("t").ok());
  ASSERT_TRUE(files.SyncFolder("").ok());
  Write(files, "t/c", "3", true);
  const auto disk = files.Crash(files.operation_num(), Loss::kWeak, 0);
  EXPECT_EQ(ContentOf(*disk, "t"), (Content{{"a", "1"}, {"b", ""}}));
}

TEST(Crash, LeavesADiskThatWorksAndCanCrashAgain) {
  MemoryFileSystem files;
  Write(files, "a", "12", true);
  ASSERT_TRUE(files.SyncFolder("").ok());
  const auto lock = files.Lock("lock").value();
  ASSERT_TRUE(files.SyncFolder("").ok());
  const auto disk = files.Crash(files.operation_num(), Loss::kWeak, 0);
  EXPECT_EQ(disk->operation_num(), 0u);
  EXPECT_TRUE(disk->Lock("lock").ok());  // its holder is dead
  Write(*disk, "b", "3", true);
  EXPECT_EQ(ContentOf(*disk), (Content{{"a", "12"}, {"b", "3"}, {"lock", ""}}));
  EXPECT_EQ(ContentOf(files), (Content{{"a", "12"}, {"lock", ""}}));
  EXPECT_EQ(ContentOf(*disk->Crash(disk->operation_num(), Loss::kWeak, 0)),
            (Content{{"a", "12"}, {"lock", ""}}));
}

TEST(Crash, IsTheSameForTheSameSeed) {
  MemoryFileSystem files;
  for (int i = 0; i < 10; ++i) Write(files, absl::StrCat("f", i), "123456789", false);
  std::set<Content> outcomes;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto once = files.Crash(files.operation_num(), Loss::kWeak, seed);
    const auto twice = files.Crash(files.operation_num(), Loss::kWeak, seed);
    EXPECT_EQ(ContentOf(*once), ContentOf(*twice));
    outcomes.insert(ContentOf(*once));
  }
  EXPECT_GT(outcomes.size(), 40u);
}

TEST(Crash, LosesSyncedDataIfSyncsAreIgnored) {
  for (const bool of_files : {false, true}) {
    MemoryFileSystem files;
    of_files ? files.IgnoreFileSyncs() : files.IgnoreFolderSyncs();
    Write(files, "a", "12", true);
    ASSERT_TRUE(files.SyncFolder("").ok());
    EXPECT_EQ(ContentOf(*files.Crash(files.operation_num(), Loss::kWeak, 0)),
              of_files ? (Content{{"a", ""}}) : Content{});
  }
}

TEST(ContentHash, IsEqualExactlyForDisksWithEqualContents) {
  MemoryFileSystem files;
  const auto everywhere = [](const std::string&) { return true; };
  const auto not_in_b = [](const std::string& path) { return path != "/t/b"; };
  const DiskHash empty = files.ContentHash(everywhere);
  ASSERT_TRUE(files.MakeFolders("t").ok());
  Write(files, "t/a", "12", false);
  const size_t cut = files.operation_num();
  Write(files, "t/b", "3", true);
  std::map<Content, std::set<DiskHash>> hashes, names;
  for (size_t prefix = cut - 2; prefix <= files.operation_num(); ++prefix) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const auto disk = files.Crash(prefix, Loss::kWeak, seed);
      const DiskHash hash = disk->ContentHash(everywhere);
      EXPECT_NE(hash, empty);
      Content content = ContentOf(*disk, "t");
      hashes[content].insert(hash);
      if (content.count("b") > 0) content["b"] = "";
      names[content].insert(disk->ContentHash(not_in_b));
    }
  }
  std::set<DiskHash> all;
  for (const auto& [content, same] : hashes) {
    EXPECT_EQ(same.size(), 1u);
    all.insert(*same.begin());
  }
  EXPECT_GT(all.size(), 8u);
  EXPECT_EQ(all.size(), hashes.size());
  EXPECT_LT(names.size(), hashes.size());
  for (const auto& [content, same] : names) EXPECT_EQ(same.size(), 1u);
}

// A checkpoint of 20 files of 1 KiB under temporary names: what a test of every crash pays a state.
TEST(Crash, StatesAreCheap) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeFolders("data").ok());
  for (int i = 0; i < 20; ++i) {
    const std::string path = absl::StrCat("data/part-", i);
    Write(files, path + ".tmp", std::string(1024, 'x'), true);
    ASSERT_TRUE(files.Replace(path + ".tmp", path).ok());
  }
  ASSERT_TRUE(files.SyncFolder("data").ok());
  size_t names = 0, states = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (size_t prefix = 0; prefix <= files.operation_num(); ++prefix, ++states) {
      const auto disk = files.Crash(prefix, seed % 2 == 0 ? Loss::kWeak : Loss::kOrdered, seed);
      if (disk->Exists("data").value()) names += disk->List("data").value().size();
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GT(names, states);
  RecordProperty("states_per_second",
                 static_cast<int>(static_cast<double>(states) / seconds.count()));
  std::printf("%.0f crash states a second\n", static_cast<double>(states) / seconds.count());
}

}  // namespace
}  // namespace cistern
