// Folders as PSLib and Paddle write them: no json, tables by number, lines of any age.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/io/gzip.h"
#include "common/value/accessor/ctr_accessor.h"
#include "test/server/saved_model/model_fleet.h"

namespace cistern::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr uint64_t kDenseRows = 10;
constexpr uint32_t kShards = 4;

// Table 000: 10 rows of ADAM_D2SUM. Table 001: ctr values with an embedx of 2.
v1::Schema PaddleSchema() {
  v1::Schema schema;
  *schema.add_tables() = CtrSpec(2);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("dense");
  dense->set_rows(kDenseRows);
  for (const char* column : {"w", "avg_w", "ada_d2sum", "ada_g2sum", "mom_velocity"}) {
    dense->add_columns(std::string(column));
  }
  v1::DenseRule& rule = *dense->mutable_rule();
  rule.set_kind(v1::DenseRule::ADAM_D2SUM);
  rule.set_learning_rate(5e-6f);
  rule.set_epsilon(1e-8f);
  rule.set_rho(0.9999f);
  rule.set_mu(0.99f);
  return schema;
}

// Records which files are opened.
class WatchedDisk : public LocalFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) override {
    absl::MutexLock lock(&mutex_);
    opened_.push_back(std::string(fs::path(path.text()).filename()));
    return LocalFileSystem::Open(path);
  }
  std::vector<std::string> opened() {
    absl::MutexLock lock(&mutex_);
    std::sort(opened_.begin(), opened_.end());
    return opened_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> opened_;
};

class ForeignFolder : public testing::Test {
 protected:
  // As 2 servers of Paddle write it: 4 shards, server 0 has 0 and 1; 6 and 4 dense rows, padded to
  // 6.
  ForeignFolder() {
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      // Keys shard and shard + 4; the second has its embedx.
      Write(absl::StrFormat("001/part-%03d-%05d", shard / 2, shard),
            absl::StrCat(shard, " 0 1 0.5 3 1 0.25 0.125 101\n", shard + 4,
                         " 9 1 0.5 3 1 0.25 0.125 101 0.75 1.5 2.5\n"));
    }
    std::string first, second;
    for (int row = 0; row < 12; ++row) {
      absl::StrAppend(row < 6 ? &first : &second, row, " 0 1 2 3\n");
    }
    Write("000/part-000", first);
    Write("000/part-001", second);
    Write("000/_SUCCESS", "");
  }

  void Write(const std::string& name, const std::string& bytes) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    WriteBytes(folder_ / name, bytes);
  }

  absl::StatusOr<LoadTotals> Load(TableStore& store, bool upgrade = false,
                                  FileSystem& disk = Disk()) {
    ThreadPool pool(2);
    LoadOptions options;
    options.foreign = true;
    options.upgrade = upgrade;
    return LoadStore(disk, store, folder_.path(), pool, options);
  }

  static std::unique_ptr<TableStore> Server(uint32_t rank, uint32_t server_num,
                                            const v1::Schema& schema = PaddleSchema(),
                                            uint32_t shard_num = kShards) {
    auto store = std::make_unique<TableStore>(Map(shard_num, server_num), rank);
    EXPECT_TRUE(store->Create(schema).ok());
    return store;
  }

  void ExpectRefused(absl::StatusCode code, const std::string& what, bool upgrade = false) {
    const auto store = Server(0, 1);
    const absl::Status status = Load(*store, upgrade).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_EQ(store->sparse_tables()[0]->counts().rows, 0u);
    EXPECT_FALSE(store->dense_tables()[0]->written());
  }

  TempFolder folder_;
};

TEST_F(ForeignFolder, LoadsOntoAnyNumberOfServers) {
  for (const uint32_t server_num : {1u, 3u}) {
    uint64_t rows = 0;
    for (uint32_t rank = 0; rank < server_num; ++rank) {
      const auto store = Server(rank, server_num);
      const absl::StatusOr<LoadTotals> totals = Load(*store);
      ASSERT_TRUE(totals.ok()) << totals.status();
      EXPECT_EQ(totals->pass, 0u);
      rows += totals->rows;
      const SparseTable& table = *store->sparse_tables()[0];
      for (Key key = 0; key < 8; ++key) {
        if (key % kShards % server_num != rank) continue;
        std::vector<float> value(14);
        bool has_embedx = false;
        ASSERT_TRUE(*table.Find(key, value.data(), &has_embedx)) << key;
        EXPECT_EQ(has_embedx, key >= 4);
        EXPECT_EQ(LoadDouble(&value[CtrCells::kShow]), 3.0);
        EXPECT_EQ(LoadU64(&value[9]), key >= 4 ? 9u : 0u);
        EXPECT_EQ(value[12], key >= 4 ? 1.5f : 0.0f);
      }
      const DenseTable& dense = *store->dense_tables()[0];
      const uint64_t count = dense.range().end - dense.range().begin;
      std::vector<float> values(count * 5);
      ASSERT_TRUE(dense.Read(dense.range().begin, count, values.data()).ok());
      for (uint64_t i = 0; i < count; ++i) {
        EXPECT_EQ(values[5 * i], static_cast<float>(dense.range().begin + i));
        EXPECT_EQ(values[5 * i + 4], 3.0f);
      }
    }
    EXPECT_EQ(rows, 8 + kDenseRows);
  }
}

TEST_F(ForeignFolder, ReadsCompressedFiles) {
  for (const char* name : {"001/part-000-00001", "000/part-001"}) {
    std::string stream;
    GzipWriter gzip;
    gzip.Append(ReadBytes(folder_ / name), &stream);
    gzip.Finish(&stream);
    fs::remove(folder_ / name);
    Write(absl::StrCat(name, ".gz"), stream);
  }
  const auto store = Server(0, 1);
  const absl::StatusOr<LoadTotals> totals = Load(*store);
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(totals->rows, 8 + kDenseRows);
}

TEST_F(ForeignFolder, LinesOfOlderFormsNeedTheUpgradeOption) {
  Write("001/part-000-00001", "1 1 0.5 3 1 0.25 0.125 101 0.75 1.5 2.5\n5 1 0.5 3 1 0.25 0.125\n");
  ExpectRefused(absl::StatusCode::kDataLoss, "load with upgrade");
  const auto store = Server(0, 1);
  ASSERT_TRUE(Load(*store, /*upgrade=*/true).ok());
  std::vector<float> value(14);
  bool has_embedx = false;
  ASSERT_TRUE(*store->sparse_tables()[0]->Find(1, value.data(), &has_embedx));
  EXPECT_TRUE(has_embedx);
  EXPECT_EQ(value[13], 2.5f);
  EXPECT_EQ(LoadU64(&value[9]), 0u);
  ASSERT_TRUE(*store->sparse_tables()[0]->Find(5, value.data(), &has_embedx));
  EXPECT_FALSE(has_embedx);
  EXPECT_EQ(value[8], -1.0f);
}

// The row without embedx shows that there is no uid, before rows of another dim are read.
TEST_F(ForeignFolder, ReadsLinesOfAnOlderFormAndAnotherDim) {
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    Write(absl::StrFormat("001/part-%03d-%05d", shard / 2, shard),
          absl::StrCat(shard + 4, " 1 0.5 3 1 0.25 0.125 101 0 1.5 2.5 3.5\n",
                       shard == 2 ? "2 1 0.5 3 1 0.25 0.125 101\n" : ""));
  }
  const auto store = Server(0, 1);
  ASSERT_TRUE(Load(*store, /*upgrade=*/true).ok());
  for (Key key = 4; key < 8; ++key) {
    std::vector<float> value(14);
    bool has_embedx = false;
    ASSERT_TRUE(*store->sparse_tables()[0]->Find(key, value.data(), &has_embedx));
    EXPECT_TRUE(has_embedx);
    EXPECT_EQ(LoadU64(&value[9]), 0u);
    EXPECT_EQ(LoadDouble(&value[CtrCells::kShow]), 3.0);
    EXPECT_THAT(std::vector<float>(value.begin() + 12, value.end()), ElementsAre(1.5f, 2.5f));
  }
}

TEST_F(ForeignFolder, TheErrorNamesTheOptionOnlyIfItHelps) {
  Write("001/part-000-00001", "1 0 1 0.5 nan 1 0.25 0.125 101\n");
  const auto store = Server(0, 1);
  const std::string message(Load(*store).status().message());
  EXPECT_THAT(message, HasSubstr("line 1: field 5 (show) 'nan' is not a finite number"));
  EXPECT_THAT(message, Not(HasSubstr("upgrade")));
}

TEST_F(ForeignFolder, LinesMayHaveWindowsEndings) {
  Write("001/part-000-00001", "1 0 1 0.5 3 1 0.25 0.125 101\r\n5 0 1 0.5 3 1 0.25 0.125 101\r\n");
  const auto store = Server(0, 1);
  ASSERT_TRUE(Load(*store).ok());
  std::vector<float> value(14);
  bool has_embedx = true;
  ASSERT_TRUE(*store->sparse_tables()[0]->Find(5, value.data(), &has_embedx));
  EXPECT_EQ(value[8], 101.0f);
  EXPECT_FALSE(has_embedx);
}

TEST_F(ForeignFolder, RefusesAnInvalidRowWithItsLine) {
  const std::string row = "1 0 1 0.5 3 1 0.25 0.125 101";
  Write("001/part-000-00001", row + "\n\n");
  ExpectRefused(absl::StatusCode::kDataLoss, "line 2: the line is empty", /*upgrade=*/true);
  Write("001/part-000-00001", "# from 2026\n" + row + "\n");
  ExpectRefused(absl::StatusCode::kDataLoss, "line 1: field 1 (key) '#' is not a whole number");
  Write("001/part-000-00001", row);
  ExpectRefused(absl::StatusCode::kDataLoss, "line 1 does not end with a newline");
  Write("001/part-000-00001", row + "\n" + row + "\n");
  ExpectRefused(absl::StatusCode::kDataLoss, "line 2: key 1 occurs for the second time");
}

TEST_F(ForeignFolder, RefusesKeysOfAnotherShard) {
  Write("001/part-000-00001", "2 0 1 0.5 3 1 0.25 0.125 101\n");
  ExpectRefused(absl::StatusCode::kDataLoss,
                "001/part-000-00001: line 1: key 2 belongs to shard 2, not to shard 1");
}

TEST_F(ForeignFolder, RefusesMissingRepeatedAndUnnumberedFiles) {
  fs::rename(folder_ / "001/part-000-00001", folder_ / "001/part-000-00007");
  ExpectRefused(absl::StatusCode::kDataLoss, "001: file number 1 is missing before 2");
  fs::rename(folder_ / "001/part-000-00007", folder_ / "001/part-001-00000");
  ExpectRefused(absl::StatusCode::kDataLoss, "number 0 occurs twice");
  fs::rename(folder_ / "001/part-001-00000", folder_ / "001/part-x");
  ExpectRefused(absl::StatusCode::kDataLoss, "001/part-x");
  fs::rename(folder_ / "001/part-x", folder_ / "001/part-000-00001.tmp");
  ExpectRefused(absl::StatusCode::kDataLoss, "file number 1 is missing");
  fs::remove_all(folder_ / "001");
  ExpectRefused(absl::StatusCode::kNotFound, "001");
}

TEST_F(ForeignFolder, RequiresOneFilePerShard) {
  const auto store = Server(0, 1, PaddleSchema(), 8);
  const absl::Status status = Load(*store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("start the servers with shard_num=4"));
}

TEST_F(ForeignFolder, RefusesDenseFilesWithTooFewOrTooManyRows) {
  Write("000/part-001", "6 0 1 2 3\n");
  ExpectRefused(absl::StatusCode::kDataLoss, "000/part-001 ends at row 7");
  Write("000/part-001", "6 0 1 2 3\n7 0 1 2 3\n8 0 1 2 3\n9 0 1 2 3\n");  // without padding
  const auto store = Server(0, 1);
  EXPECT_TRUE(Load(*store).ok());
  std::string longer;
  for (int row = 0; row < 7; ++row) absl::StrAppend(&longer, row, " 0 1 2 3\n");
  Write("000/part-000", longer);
  ExpectRefused(absl::StatusCode::kDataLoss, "more rows than a file of this table has");
}

TEST_F(ForeignFolder, RequiresTablesInTheStore) {
  TableStore store(Map(kShards, 1), 0);
  const absl::Status status = Load(store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("from a model file"));
}

// spec/003 section 1.5: 465052 rows in 5 files, 4 servers: server 2 starts at row 232528 and reads
// files 2 and 3.
TEST(ForeignDense, AServerOpensOnlyTheFilesWithItsRows) {
  constexpr uint64_t kRows = 465052, kRowsOfFile = 93011;
  TempFolder folder;
  fs::create_directories(folder / "000");
  for (uint64_t file = 0; file < 5; ++file) {
    std::string lines;
    for (uint64_t row = file * kRowsOfFile; row < std::min(kRows, (file + 1) * kRowsOfFile);
         ++row) {
      absl::StrAppend(&lines, row % 1000, " 0 ", row / 1000, " 2 3\n");
    }
    WriteBytes(folder / absl::StrFormat("000/part-%03d", file), lines);
  }
  v1::Schema schema = PaddleSchema();
  schema.clear_tables();
  schema.mutable_dense_tables(0)->set_rows(kRows);
  const std::vector<std::vector<std::string>> expected = {{"part-000", "part-001"},
                                                          {"part-001", "part-002"},
                                                          {"part-002", "part-003"},
                                                          {"part-003", "part-004"}};
  const uint64_t begins[] = {0, 116264, 232528, 348792, kRows};
  for (uint32_t rank = 0; rank < 4; ++rank) {
    TableStore store(Map(kShards, 4), rank);
    ASSERT_TRUE(store.Create(schema).ok());
    WatchedDisk disk;
    ThreadPool pool(1);
    LoadOptions options;
    options.foreign = true;
    const absl::StatusOr<LoadTotals> totals = LoadStore(disk, store, folder.path(), pool, options);
    ASSERT_TRUE(totals.ok()) << totals.status();
    EXPECT_EQ(disk.opened(), expected[rank]);
    EXPECT_EQ(totals->rows, begins[rank + 1] - begins[rank]);
    for (const uint64_t row : {begins[rank], begins[rank + 1] - 1}) {
      float value[5];
      ASSERT_TRUE(store.dense_tables()[0]->Read(row, 1, value).ok());
      EXPECT_THAT(value, ElementsAre(row % 1000, 0, row / 1000, 2, 3));
    }
  }
}

}  // namespace
}  // namespace cistern::server
