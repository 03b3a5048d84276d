// Modes and formats of saved models: which rows a save holds, in which form, and the load of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/accessor/ctr_accessor.h"
#include "test/server/saved_model/model_fleet.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

v1::SaveFormat Format(v1::SaveFormat::Kind kind, bool gzip, bool six_digits = false) {
  v1::SaveFormat format;
  format.set_kind(kind);
  format.set_gzip(gzip);
  format.set_six_digits(six_digits);
  return format;
}

Fleet LoadAll(const std::string& folder, uint32_t server_num) {
  ThreadPool pool(2);
  Fleet fleet = EmptyFleet(server_num);
  for (const auto& store : fleet) {
    const absl::StatusOr<LoadTotals> totals = LoadStore(Disk(), *store, folder, pool);
    EXPECT_TRUE(totals.ok()) << totals.status();
  }
  return fleet;
}

uint64_t RowsOf(const Fleet& fleet, size_t table) {
  uint64_t rows = 0;
  for (const auto& store : fleet) rows += store->sparse_tables()[table]->counts().rows;
  return rows;
}

TEST(ModelFormats, EveryFormatLoadsOntoAnyNumberOfServersWithoutLoss) {
  const Fleet saved = FullFleet(2);
  for (const auto kind : {v1::SaveFormat::TEXT, v1::SaveFormat::BINARY}) {
    for (const bool gzip : {false, true}) {
      TempFolder folder;
      SaveOptions options;
      options.format = Format(kind, gzip);
      const SaveTotals totals = SaveAll(saved, 42, folder / "model", options);
      EXPECT_EQ(totals.rows, 2 * kKeys + 101);
      for (const uint32_t readers : {1u, 3u}) {
        const Fleet loaded = LoadAll(folder / "model", readers);
        EXPECT_EQ(Digests(loaded), Digests(saved));
        // And back, from their current number of servers.
        const std::string again = folder / absl::StrCat("again-", readers);
        SaveAll(loaded, 43, again, options);
        EXPECT_EQ(Digests(LoadAll(again, 2)), Digests(saved));
      }
    }
  }
}

TEST(ModelFormats, FilesAreNamedAndListed) {
  TempFolder folder;
  const Fleet saved = FullFleet(2);
  SaveOptions options;
  options.format = Format(v1::SaveFormat::BINARY, true);
  ThreadPool pool(1);
  const absl::StatusOr<SaveTotals> totals =
      SaveStore(Disk(), *saved[1], 1, folder.path(), pool, options);
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_THAT(totals->file_names, testing::UnorderedElementsAre(
                                      "ctr/part-001-00001.bin.gz", "ctr/part-001-00003.bin.gz",
                                      "ctr/part-001-00005.bin.gz", "deep/part-001-00001.bin.gz",
                                      "deep/part-001-00003.bin.gz", "deep/part-001-00005.bin.gz",
                                      "dense/part-001.bin.gz"));
  for (const std::string& name : totals->file_names) EXPECT_TRUE(fs::exists(folder / name));
}

TEST(ModelFormats, SixDigitsLosePrecisionAndAreRecorded) {
  TempFolder folder;
  const Fleet saved = FullFleet(1);
  SaveOptions options;
  options.format = Format(v1::SaveFormat::TEXT, false, true);
  SaveAll(saved, 1, folder.path(), options);
  EXPECT_TRUE(ReadParts(Disk(), folder.path()).value()[0].format.six_digits());
  const Fleet loaded = LoadAll(folder.path(), 1);
  EXPECT_NE(Digests(loaded), Digests(saved));
  const SparseTable& table = *loaded[0]->sparse_tables()[1];
  std::vector<float> value(2);
  bool has_embedx = false;
  ASSERT_TRUE(*table.Find(TestKey(77), value.data(), &has_embedx));
  const std::vector<float> exact = ValueOf(table.layout(), 77, true);
  EXPECT_NEAR(value[0], exact[0], std::fabs(exact[0]) * 1e-5);
}

TEST(ModelFormats, RefusesUnknownFormatsAndModes) {
  TempFolder folder;
  const Fleet saved = FullFleet(1);
  ThreadPool pool(1);
  SaveOptions options;
  options.format = Format(v1::SaveFormat::BINARY, false, true);
  EXPECT_EQ(SaveStore(Disk(), *saved[0], 1, folder / "m", pool, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  options.format = {};
  options.mode = static_cast<v1::SaveMode>(9);
  EXPECT_EQ(SaveStore(Disk(), *saved[0], 1, folder / "m", pool, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder / "m"));
}

// Key i of table ctr has delta_score i / 10, unseen_days i % 20, show 3 * i and no clicks, so its
// score is 0.3 * i.
std::vector<float> Statistics(const ValueLayout& layout, Key i) {
  std::vector<float> value(layout.full_floats());
  layout.Initialize(i, value.data());
  value[CtrCells::kUnseenDays] = static_cast<float>(i % 20);
  value[CtrCells::kDeltaScore] = static_cast<float>(i) / 10;
  StoreDouble(&value[CtrCells::kShow], 3.0 * static_cast<double>(i));
  return value;
}

TEST(ModelFormats, ModesSaveTheRowsOfTheirFilter) {
  TempFolder folder;
  Fleet fleet = EmptyFleet(1);
  ASSERT_TRUE(fleet[0]->Create(TestSchema()).ok());
  SparseTable& ctr = *fleet[0]->sparse_tables()[0];
  SparseTable& deep = *fleet[0]->sparse_tables()[1];
  uint64_t delta = 0, base = 0;
  for (Key i = 1; i <= 100; ++i) {
    ctr.Insert(static_cast<uint32_t>(i % kShardNum), i, Statistics(ctr.layout(), i).data(), false);
    deep.Insert(static_cast<uint32_t>(i % kShardNum), i, std::vector<float>{1, 2}.data(), true);
    // Score 0.3 * i with nonclk_coeff 0.1f, a little above 0.1: i = 5 reaches 1.5.
    const bool scored = i >= 5 && i % 20 <= 16;
    base += scored;
    delta += scored && static_cast<float>(i) / 10 >= 0.25f;
  }
  ASSERT_EQ(base, 81u);  // 96 less the 15 of i % 20 = 17, 18, 19
  ASSERT_EQ(delta, 81u);
  const struct {
    v1::SaveMode mode;
    uint64_t rows;
  } cases[] = {{v1::ALL, 100}, {v1::BATCH, 100}, {v1::BASE, base}, {v1::DELTA, delta}};
  for (const auto& c : cases) {
    SaveOptions options;
    options.mode = c.mode;
    const std::string name = folder / v1::SaveMode_Name(c.mode);
    SaveAll(fleet, 5, name, options);
    EXPECT_EQ(ReadParts(Disk(), name).value()[0].mode, c.mode);
    const Fleet loaded = LoadAll(name, 2);
    EXPECT_EQ(RowsOf(loaded, 0), c.rows) << name;
    EXPECT_EQ(RowsOf(loaded, 1), 100u) << name;  // an embedding has no score
  }
}

TEST(ModelFormats, TablesThatKeepDaysNeedToday) {
  TempFolder folder;
  v1::Schema schema = TestSchema();
  schema.mutable_tables(0)->mutable_ctr()->set_day_id_decay(true);
  Fleet fleet = EmptyFleet(1);
  ASSERT_TRUE(fleet[0]->Create(schema).ok());
  ThreadPool pool(1);
  SaveOptions options;
  options.mode = v1::DELTA;
  const absl::Status status = SaveStore(Disk(), *fleet[0], 1, folder / "m", pool, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("day_id_decay"));
  options.day = 20778;
  EXPECT_TRUE(SaveStore(Disk(), *fleet[0], 1, folder / "m", pool, options).ok());
  options = SaveOptions();  // all rows, on any day
  EXPECT_TRUE(SaveStore(Disk(), *fleet[0], 1, folder / "n", pool, options).ok());
}

TEST(ModelFormats, RefusesAFlippedByteOfACompressedFileWithTheFile) {
  TempFolder folder;
  SaveOptions options;
  options.format = Format(v1::SaveFormat::TEXT, true);
  SaveAll(FullFleet(1), 1, folder.path(), options);
  const std::string path = folder / "deep/part-000-00003.gz";
  std::string bytes = ReadBytes(path);
  bytes[bytes.size() / 2] ^= 4;
  WriteBytes(path, bytes);
  ThreadPool pool(2);
  TableStore store(Map(kShardNum, 1), 0);
  const absl::Status status = LoadStore(Disk(), store, folder.path(), pool).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("deep/part-000-00003.gz"));
  for (const auto& table : store.sparse_tables()) EXPECT_EQ(table->counts().rows, 0u);
}

}  // namespace
}  // namespace cistern::server
