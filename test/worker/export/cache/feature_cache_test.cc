#include "worker/export/cache/feature_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/accessor/ctr_accessor.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/export/xbox/ctr_fleet.h"
#include "test/worker/export/xbox/sequence_reader.h"
#include "worker/export/xbox/xbox_model.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CacheOptions Options(double rate, uint64_t seed = 0) {
  return {.folder = "/out", .rate = rate, .files = 4, .seed = seed, .server_num = 2, .tables = {0}};
}

// The rows of the cache, by file.
std::vector<XboxRows> Files(FileSystem& files) {
  std::vector<XboxRows> parts(4);
  for (size_t i = 0; i < parts.size(); ++i) {
    ReadCubeFile(files, absl::StrCat("/out/000_cache/part-00", i), &parts[i]);
  }
  return parts;
}

XboxRows All(FileSystem& files) {
  XboxRows all;
  for (XboxRows& part : Files(files)) all.merge(part);
  return all;
}

// What the servers hold, computed without the code under test: key -> show, of rows that a base
// holds.
std::map<Key, double> ShowsOfBase(CtrFleet& fleet) {
  std::map<Key, double> shows;
  EXPECT_TRUE(fleet.model()
                  ->Scan(0,
                         [&](uint32_t, Key key, const float* value, bool) {
                           const double show = LoadDouble(value + CtrCells::kShow);
                           const double click = LoadDouble(value + CtrCells::kClick);
                           if ((show - click) * 0.1 + click >= 1.5) shows[key] = show;
                           return absl::OkStatus();
                         })
                  .ok());
  return shows;
}

class FeatureCache : public testing::Test {
 protected:
  FeatureCache() : fleet_(5) {
    for (int pass = 0; pass < 6; ++pass) fleet_.Train(60);
  }
  CacheWritten::Table Write(const CacheOptions& options) {
    const auto written = WriteFeatureCache(files_, *fleet_.model(), options);
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? written->tables[0] : CacheWritten::Table();
  }

  CtrFleet fleet_;
  MemoryFileSystem files_;
};

TEST_F(FeatureCache, HoldsTheRowsWithAtLeastTheThresholdOfShows) {
  for (const double rate : {0.00055, 0.6, 1.0}) {
    const CacheWritten::Table table = Write(Options(rate));
    std::vector<Key> expected, found;
    for (const auto& [key, show] : ShowsOfBase(fleet_)) {
      if (show >= table.threshold) expected.push_back(key);
    }
    for (const auto& [key, value] : All(files_)) found.push_back(key);
    EXPECT_EQ(found, expected) << rate;
    EXPECT_EQ(table.rows, expected.size());
    EXPECT_GT(table.rows, 10u);
  }
  EXPECT_EQ(ReadWhole(files_, "/out/000_cache/sparse_cache.meta", 1000).value(),
            absl::StrCat("file_prefix:part\npart_num:4\nkey_num:", All(files_).size(), "\n"));
}

TEST_F(FeatureCache, ValuesAreThoseOfABase) {
  Write(Options(1));
  XboxOptions base = {.folder = "/base", .files = 1, .now = 1, .tables = {0}};
  ASSERT_TRUE(WriteXbox(files_, *fleet_.model(), base).ok());
  XboxRows rows;
  ApplyLast(files_, "/base/donefile/base.txt", &rows);
  const XboxRows cached = All(files_);
  EXPECT_LE(cached.size(), rows.size());
  for (const auto& [key, value] : cached) EXPECT_EQ(rows[key], value);
}

TEST_F(FeatureCache, TheShuffleIsAFunctionOfKeyAndSeed) {
  Write(Options(1, /*seed=*/1));
  const std::vector<XboxRows> first = Files(files_);
  const std::string bytes = ReadWhole(files_, "/out/000_cache/part-000", 1 << 20).value();
  Write(Options(1, /*seed=*/1));
  EXPECT_EQ(ReadWhole(files_, "/out/000_cache/part-000", 1 << 20).value(), bytes);
  Write(Options(1, /*seed=*/2));
  const std::vector<XboxRows> second = Files(files_);
  EXPECT_FALSE(first == second);
  for (const XboxRows& part : second) EXPECT_GT(part.size(), All(files_).size() / 10);
}

TEST_F(FeatureCache, AnyFailedCallLeavesAWholeCacheAndTheNextExportSucceeds) {
  const CacheWritten::Table old = Write(Options(0.00055));
  const std::string before = ReadWhole(files_, "/out/000_cache/cache.json", 1 << 20).value();
  MemoryFileSystem complete;
  ASSERT_TRUE(WriteFeatureCache(complete, *fleet_.model(), Options(1)).ok());
  const std::string after = ReadWhole(complete, "/out/000_cache/cache.json", 1 << 20).value();
  ASSERT_NE(before, after);
  uint64_t n = 1;
  for (;; ++n) {
    const auto memory = files_.Crash(files_.operation_num(), MemoryFileSystem::Loss::kKill, 0);
    FaultFileSystem faulty(memory.get());
    faulty.FailCall(n, Fault::kNoSpace);
    (void)WriteFeatureCache(faulty, *fleet_.model(), Options(1)).status();
    if (faulty.hits().empty()) break;
    const std::string found = ReadWhole(*memory, "/out/000_cache/cache.json", 1 << 20).value();
    EXPECT_TRUE(found == before || found == after) << faulty.hits()[0];
    EXPECT_EQ(All(*memory).size(), found == before ? old.rows : All(complete).size());
    EXPECT_TRUE(WriteFeatureCache(*memory, *fleet_.model(), Options(1)).ok()) << faulty.hits()[0];
    EXPECT_THAT(memory->List("/out").value(), ElementsAre("000_cache")) << faulty.hits()[0];
  }
  EXPECT_GT(n, 30u);
}

TEST_F(FeatureCache, ALossOfPowerLeavesTheOldCacheOrTheNewOne) {
  Write(Options(0.00055));
  const std::string before = ReadWhole(files_, "/out/000_cache/cache.json", 1 << 20).value();
  const size_t first = files_.operation_num();
  Write(Options(1));
  const std::string after = ReadWhole(files_, "/out/000_cache/cache.json", 1 << 20).value();
  ASSERT_NE(before, after);
  for (size_t prefix = first; prefix <= files_.operation_num(); ++prefix) {
    for (const auto loss : {MemoryFileSystem::Loss::kKill, MemoryFileSystem::Loss::kOrdered,
                            MemoryFileSystem::Loss::kWeak}) {
      const auto memory = files_.Crash(prefix, loss, prefix);
      const std::string found =
          ReadWhole(*memory, "/out/000_cache/cache.json", 1 << 20).value_or("nothing");
      EXPECT_TRUE(found == before || found == after) << prefix << ": " << found;
      EXPECT_TRUE(prefix < files_.operation_num() || found == after);
    }
  }
}

TEST_F(FeatureCache, ServersWithoutAMemoryCacheSayHowToGetOne) {
  CacheOptions options = Options(1);
  options.from_servers = true;
  const absl::Status status = WriteFeatureCache(files_, *fleet_.model(), options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr("cache_rate"));
  EXPECT_THAT(files_.List("/out").value(), ElementsAre());
}

TEST_F(FeatureCache, WrongOptionsAreRefused) {
  for (const double rate : {0.0, -1.0, 1.1, std::nan("")}) {
    EXPECT_EQ(WriteFeatureCache(files_, *fleet_.model(), Options(rate)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  files_.Put("/out/000_cache/diary.txt", "x");
  EXPECT_EQ(WriteFeatureCache(files_, *fleet_.model(), Options(1)).status().code(),
            absl::StatusCode::kAlreadyExists);
  EmbeddedFleet servers(1);
  const auto client = Writer(servers.Links());
  CacheOptions options = Options(1);
  options.tables = {kDeep};
  options.server_num = 1;
  const absl::Status status =
      WriteFeatureCache(files_, *CommittedModelOf(*client, "servers"), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not count shows"));
}

TEST_F(FeatureCache, ServersCountTheirRowsAsAScanDoes) {
  const auto model = fleet_.model();
  EXPECT_EQ(model->CountRows(0, 2).value(), model->CommittedModel::CountRows(0, 2).value());
}

}  // namespace
}  // namespace cistern
