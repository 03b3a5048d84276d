// A fleet's tables, saved by n servers and loaded onto m.
#include "server/saved_model/model_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/saved_model/model_fleet.h"
#include "test/support/temp_folder.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ModelSnapshot, LoadsOntoAnyNumberOfServers) {
  ThreadPool pool(2);
  for (const uint32_t writers : {1u, 2u, 3u, 7u}) {
    TempFolder folder;
    const Fleet saved = FullFleet(writers);
    const SaveTotals totals = SaveAll(saved, 42, folder / "model");
    EXPECT_EQ(totals.rows, 2 * kKeys + 101);
    EXPECT_EQ(totals.files, 2 * kShardNum + writers);
    for (const uint32_t readers : {1u, 2u, 3u, 5u, 7u}) {
      Fleet loaded = EmptyFleet(readers);
      uint64_t rows = 0;
      for (const auto& store : loaded) {
        const absl::StatusOr<LoadTotals> load = LoadStore(Disk(), *store, folder / "model", pool);
        ASSERT_TRUE(load.ok()) << load.status();
        EXPECT_EQ(load->pass, 42u);
        rows += load->rows;
        EXPECT_FALSE(store->dense_tables()[1]->written());
      }
      EXPECT_EQ(rows, totals.rows);
      EXPECT_EQ(Digests(loaded), Digests(saved)) << writers << " to " << readers;
    }
  }
}

TEST(ModelSnapshot, RestoresEveryCell) {
  TempFolder folder;
  SaveAll(FullFleet(2), 1, folder.path());
  ThreadPool pool(2);
  Fleet loaded = EmptyFleet(1);
  ASSERT_TRUE(LoadStore(Disk(), *loaded[0], folder.path(), pool).ok());
  for (const auto& table : loaded[0]->sparse_tables()) {
    EXPECT_EQ(table->counts().rows, kKeys);
    for (Key i = 0; i < kKeys; ++i) {
      std::vector<float> value(table->layout().full_floats());
      bool has_embedx = false;
      ASSERT_TRUE(*table->Find(TestKey(i), value.data(), &has_embedx));
      ASSERT_EQ(has_embedx, HasEmbedx(table->layout(), i));
      const std::vector<float> expected = ValueOf(table->layout(), i, has_embedx);
      ASSERT_EQ(std::memcmp(value.data(), expected.data(),
                            table->layout().floats(has_embedx) * sizeof(float)),
                0);
    }
  }
  std::vector<float> dense(101 * 3);
  ASSERT_TRUE(loaded[0]->dense_tables()[0]->Read(0, 101, dense.data()).ok());
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_EQ(dense[i], DenseCell(i / 3, i % 3));
}

// The other servers saved another pass, so this server's save is no longer part of a model.
TEST(ModelSnapshot, ASaveReplacesTheSaveOfTheNamedPass) {
  TempFolder folder;
  ThreadPool pool(2);
  const Fleet fleet = FullFleet(1);
  const auto save = [&](PassId pass, std::optional<PassId> instead_of) {
    SaveOptions options;
    options.instead_of = instead_of;
    return SaveStore(Disk(), *fleet[0], pass, folder.path(), pool, options).status();
  };
  EXPECT_TRUE(save(3, 2).ok());  // nothing there
  EXPECT_EQ(save(4, std::nullopt).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(save(4, 2).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadParts(Disk(), folder.path())->at(0).pass, 3u);
  const absl::Status again = save(4, 3);
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_EQ(ReadParts(Disk(), folder.path())->at(0).pass, 4u);
  Fleet loaded = EmptyFleet(1);
  EXPECT_TRUE(LoadStore(Disk(), *loaded[0], folder.path(), pool).ok());
}

// spec/003 section 1.5: 465052 parameters of 5 columns, from 5 files onto 4 servers; 93011 rows per
// file and 116264 per server, so that server 2 starts at row 232528, within file 2, and ends in
// file 3.
TEST(ModelSnapshot, RepartitionsTheDenseTableOfTheSpec) {
  constexpr uint64_t kRows = 465052;
  v1::Schema schema;
  *schema.add_dense_tables() = DenseSpec("dense", kRows, 5);
  TempFolder folder;
  Fleet saved = EmptyFleet(5);
  for (const auto& store : saved) {
    ASSERT_TRUE(store->Create(schema).ok());
    FillDense(*store->dense_tables()[0]);
  }
  SaveAll(saved, 3, folder.path());
  const std::vector<ModelPart> parts = ReadParts(Disk(), folder.path()).value();
  ASSERT_EQ(parts.size(), 5u);
  EXPECT_EQ(parts[0].files[0].rows, 93011u);
  EXPECT_EQ(parts[4].files[0].rows, kRows - 4 * 93011);

  const struct {
    uint64_t begin, end;
  } ranges[] = {{0, 116264}, {116264, 232528}, {232528, 348792}, {348792, kRows}};
  ThreadPool pool(2);
  const Fleet loaded = EmptyFleet(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(LoadStore(Disk(), *loaded[rank], folder.path(), pool).ok());
    const DenseTable& table = *loaded[rank]->dense_tables()[0];
    EXPECT_EQ(table.range().begin, ranges[rank].begin);
    EXPECT_EQ(table.range().end, ranges[rank].end);
    const uint64_t count = table.range().end - table.range().begin;
    std::vector<float> values(count * 5);
    ASSERT_TRUE(table.Read(table.range().begin, count, values.data()).ok());
    for (uint64_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], DenseCell(ranges[rank].begin + i / 5, i % 5)) << i;
    }
  }
}

// 3 rows on 7 servers: most own none.
TEST(ModelSnapshot, DenseTableMayBeSmallerThanTheFleet) {
  v1::Schema schema;
  *schema.add_dense_tables() = DenseSpec("dense", 3, 1);
  TempFolder folder;
  const Fleet saved = EmptyFleet(7), loaded = EmptyFleet(2);
  for (const auto& store : saved) {
    ASSERT_TRUE(store->Create(schema).ok());
    DenseTable& table = *store->dense_tables()[0];
    if (table.range().begin < table.range().end) FillDense(table);
  }
  SaveAll(saved, 1, folder.path());
  ThreadPool pool(2);
  uint64_t digest = 0, expected = 0;
  for (const auto& store : saved) expected += store->dense_tables()[0]->Digest();
  for (const auto& store : loaded) {
    ASSERT_TRUE(LoadStore(Disk(), *store, folder.path(), pool).ok());
    digest += store->dense_tables()[0]->Digest();
  }
  EXPECT_EQ(digest, expected);
}

class SavedModel : public testing::Test {
 protected:
  SavedModel() { SaveAll(saved_, 9, folder_.path()); }

  // Expects a load onto one server to fail with `code` and a message that contains `what`, and to
  // leave no row.
  void ExpectRefused(absl::StatusCode code, const std::string& what,
                     uint32_t shard_num = kShardNum) {
    TableStore store(Map(shard_num, 1), 0);
    ThreadPool pool(2);
    const absl::Status status = LoadStore(Disk(), store, folder_.path(), pool).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    for (const auto& table : store.sparse_tables()) EXPECT_EQ(table->counts().rows, 0u);
    for (const auto& table : store.dense_tables()) EXPECT_FALSE(table->written());
  }

  // Replaces file `name` of server 0 by `lines`, with a json file that fits it.
  void Replace(const std::string& name, const std::string& lines, uint64_t rows) {
    ModelPart part = ReadParts(Disk(), folder_.path()).value()[0];
    fs::remove(folder_ / PartJsonName(0, 2));
    auto writer = ModelFileWriter::Create(Disk(), folder_.path(), name).value();
    ASSERT_TRUE(writer->Append(lines, rows).ok());
    const ModelFile file = writer->Close().value();
    for (ModelFile& listed : part.files) {
      if (listed.name == name) listed = file;
    }
    ASSERT_TRUE(WritePart(Disk(), folder_.path(), part).ok());
  }

  TempFolder folder_;
  const Fleet saved_ = FullFleet(2);
};

TEST_F(SavedModel, IsNeverOverwritten) {
  ThreadPool pool(2);
  const std::string before = ReadBytes(folder_ / "ctr/part-000-00000");
  EXPECT_EQ(SaveStore(Disk(), *saved_[0], 10, folder_.path(), pool).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(SaveStore(Disk(), *FullFleet(3)[2], 10, folder_.path(), pool).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadBytes(folder_ / "ctr/part-000-00000"), before);
  EXPECT_EQ(ReadParts(Disk(), folder_.path()).value()[0].pass, 9u);
}

TEST_F(SavedModel, RefusesAFlippedByteWithTheFile) {
  const std::string path = folder_ / "ctr/part-001-00003", bytes = ReadBytes(path);
  std::string flipped = bytes;
  flipped[flipped.find_last_of("12345678")] ^= 1;
  WriteBytes(path, flipped);
  ExpectRefused(absl::StatusCode::kDataLoss, "ctr/part-001-00003");
  WriteBytes(path, bytes.substr(0, bytes.size() / 2));
  ExpectRefused(absl::StatusCode::kDataLoss, "ctr/part-001-00003: its size is");
  fs::remove(path);
  ExpectRefused(absl::StatusCode::kDataLoss, "ctr/part-001-00003");
}

TEST_F(SavedModel, RefusesABadDenseFileWithTheFile) {
  WriteBytes(folder_ / "dense/part-001", "1 2 3\n");
  ExpectRefused(absl::StatusCode::kDataLoss, "dense/part-001: its size is");
}

TEST_F(SavedModel, RefusesARowOfAnotherShardWithFileAndLine) {
  Replace("deep/part-000-00002", "2 0.5 0.5\n9 1 1\n10 1 1\n", 3);
  ExpectRefused(absl::StatusCode::kDataLoss,
                "deep/part-000-00002: line 3: key 10 belongs to shard 3, not to shard 2");
}

TEST_F(SavedModel, RefusesARepeatedKeyWithFileAndLine) {
  Replace("deep/part-000-00002", "2 0.5 0.5\n9 1 1\n2 1 1\n", 3);
  ExpectRefused(absl::StatusCode::kDataLoss,
                "deep/part-000-00002: line 3: key 2 occurs for the second time");
}

TEST_F(SavedModel, RefusesAReservedKeyWithFileAndLine) {
  // 2^63 - 1 = 7 * 1317624576693539401, so it belongs to shard 0.
  Replace("deep/part-000-00000", "9223372036854775807 1 1\n", 1);
  ExpectRefused(absl::StatusCode::kDataLoss, "deep/part-000-00000: line 1: table 'deep'");
}

TEST_F(SavedModel, RefusesAnUnreadableRowWithFileLineAndField) {
  Replace("deep/part-000-00002", "2 0.5 0.5\n9 1 nan\n", 2);
  ExpectRefused(absl::StatusCode::kDataLoss,
                "deep/part-000-00002: line 2: field 3 (w[1]) 'nan' is not a finite number");
}

TEST_F(SavedModel, RefusesAnotherShardNum) {
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "start the servers with shard_num=7", 8);
}

TEST_F(SavedModel, RefusesAnotherSchemaWithTheDifference) {
  v1::Schema schema = TestSchema();
  schema.mutable_tables(1)->set_dim(4);
  TableStore store(Map(kShardNum, 1), 0);
  ASSERT_TRUE(store.Create(schema).ok());
  ThreadPool pool(1);
  const absl::Status status = LoadStore(Disk(), store, folder_.path(), pool).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("table 'deep': dim is 4 here and 2 there"));
}

TEST_F(SavedModel, IsNotLoadedOverRows) {
  Fleet fleet = FullFleet(1);
  const std::vector<uint64_t> before = Digests(fleet);
  ThreadPool pool(2);
  const absl::Status status = LoadStore(Disk(), *fleet[0], folder_.path(), pool).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("clear it before loading"));
  EXPECT_EQ(Digests(fleet), before);
}

TEST(ModelSnapshot, ReportsNothingToSaveAndNothingToLoad) {
  TempFolder folder;
  ThreadPool pool(1);
  TableStore store(Map(4, 1), 0);
  EXPECT_EQ(SaveStore(Disk(), store, 1, folder / "m", pool).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(LoadStore(Disk(), store, folder / "m", pool).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder / "m"));
}

// A save that fails half way removes its files and leaves those of the other servers.
TEST(ModelSnapshot, AFailedSaveRemovesItsFiles) {
  TempFolder folder;
  ThreadPool pool(2);
  const Fleet fleet = FullFleet(2);
  ASSERT_TRUE(SaveStore(Disk(), *fleet[0], 1, folder.path(), pool).ok());
  fs::create_directories(folder / "deep/part-001-00003/in the way");
  const absl::Status status = SaveStore(Disk(), *fleet[1], 1, folder.path(), pool).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("deep/part-001-00003"));
  EXPECT_TRUE(fs::exists(folder / "ctr/part-000-00000"));
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr("part-001")));
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr(".tmp")));
  }
  fs::remove_all(folder / "deep/part-001-00003");
  EXPECT_TRUE(SaveStore(Disk(), *fleet[1], 1, folder.path(), pool).ok());
  EXPECT_TRUE(ReadParts(Disk(), folder.path()).ok());
}

TEST(ModelSnapshot, EmptyTablesCanBeSavedAndLoaded) {
  TempFolder folder;
  ThreadPool pool(2);
  TableStore store(Map(4, 1), 0), loaded(Map(4, 1), 0);
  ASSERT_TRUE(store.Create(TestSchema()).ok());
  ASSERT_TRUE(SaveStore(Disk(), store, 0, folder.path(), pool).ok());
  const absl::StatusOr<LoadTotals> totals = LoadStore(Disk(), loaded, folder.path(), pool);
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(totals->rows, 0u);
  EXPECT_EQ(loaded.schema_hash(), store.schema_hash());
}

}  // namespace
}  // namespace cistern::server
