// Models whose tables have changed since the save: refused, or converted with the load option.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/saved_model/model_fleet.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;

class ModelUpgrade : public testing::TestWithParam<v1::SaveFormat::Kind> {
 protected:
  ModelUpgrade() {
    SaveOptions options;
    options.format.set_kind(GetParam());
    SaveAll(FullFleet(2), 9, folder_.path(), options);
  }

  absl::Status Load(TableStore& store, bool upgrade) {
    ThreadPool pool(2);
    LoadOptions options;
    options.upgrade = upgrade;
    return LoadStore(Disk(), store, folder_.path(), pool, options).status();
  }

  static std::unique_ptr<TableStore> StoreOf(const v1::Schema& schema) {
    auto store = std::make_unique<TableStore>(Map(kShardNum, 1), 0);
    EXPECT_TRUE(store->Create(schema).ok());
    return store;
  }

  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, ModelUpgrade,
                         testing::Values(v1::SaveFormat::TEXT, v1::SaveFormat::BINARY),
                         [](const auto& kind) { return v1::SaveFormat::Kind_Name(kind.param); });

TEST_P(ModelUpgrade, WithoutTheOptionTheErrorNamesIt) {
  v1::Schema schema = TestSchema();
  schema.mutable_tables(0)->set_dim(5);
  const absl::Status status = Load(*StoreOf(schema), false);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("dim is 5 here and 3 there"),
                                                            HasSubstr("load with upgrade")));
}

TEST_P(ModelUpgrade, LargerDimsAreFilledAndSmallerOnesCut) {
  v1::Schema schema = TestSchema();
  schema.mutable_tables(0)->set_dim(5);  // ctr, from 3
  schema.mutable_tables(1)->set_dim(1);  // deep, from 2
  const auto store = StoreOf(schema);
  ASSERT_TRUE(Load(*store, true).ok());
  const SparseTable& ctr = *store->sparse_tables()[0];
  const SparseTable& deep = *store->sparse_tables()[1];
  const ValueLayout old_ctr = ValueLayout::Create(TestSchema().tables(0)).value();
  const ValueLayout old_deep = ValueLayout::Create(TestSchema().tables(1)).value();
  EXPECT_EQ(ctr.counts().rows, kKeys);
  for (Key i = 0; i < kKeys; i += 7) {
    std::vector<float> value(ctr.layout().full_floats());
    bool has_embedx = false;
    ASSERT_TRUE(*ctr.Find(TestKey(i), value.data(), &has_embedx));
    ASSERT_EQ(has_embedx, HasEmbedx(ctr.layout(), i));
    std::vector<float> expected = ValueOf(old_ctr, i, has_embedx);
    if (has_embedx) {
      std::vector<float> fresh(ctr.layout().full_floats());
      ctr.layout().InitializeEmbedx(TestKey(i), fresh.data());
      expected.insert(expected.end(), fresh.end() - 2, fresh.end());
    } else {
      expected.resize(value.size(), 0.0f);
    }
    ASSERT_EQ(std::memcmp(value.data(), expected.data(), value.size() * sizeof(float)), 0) << i;
    float w = 0;
    ASSERT_TRUE(*deep.Find(TestKey(i), &w, &has_embedx));
    ASSERT_EQ(w, ValueOf(old_deep, i, true)[0]);
  }
}

TEST_P(ModelUpgrade, DenseColumnsAreKeptByName) {
  v1::Schema schema = TestSchema();
  v1::DenseTableSpec& dense = *schema.mutable_dense_tables(0);  // c0 c1 c2
  dense.clear_columns();
  for (const char* column : {"c2", "fresh"}) dense.add_columns(std::string(column));
  const auto store = StoreOf(schema);
  ASSERT_TRUE(Load(*store, true).ok());
  std::vector<float> values(101 * 2);
  ASSERT_TRUE(store->dense_tables()[0]->Read(0, 101, values.data()).ok());
  for (uint64_t row = 0; row < 101; ++row) {
    EXPECT_EQ(values[2 * row], DenseCell(row, 2));
    EXPECT_EQ(values[2 * row + 1], 0.0f);
  }
}

TEST_P(ModelUpgrade, ADenseTableWithOtherRowsIsLeftOutAndStartsEmpty) {
  v1::Schema schema = TestSchema();
  schema.mutable_tables(1)->set_dim(4);
  schema.mutable_dense_tables(0)->set_rows(103);
  EXPECT_EQ(Load(*StoreOf(schema), false).code(), absl::StatusCode::kFailedPrecondition);
  const auto store = StoreOf(schema);
  ThreadPool pool(2);
  LoadOptions options;
  options.upgrade = true;
  const auto loaded = LoadStore(Disk(), *store, folder_.path(), pool, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->rows, 2 * kKeys);
  ASSERT_EQ(loaded->left_out.size(), 1u);
  EXPECT_EQ(loaded->left_out[0].name(), "dense");
  EXPECT_THAT(loaded->left_out[0].reason(), HasSubstr("103 rows here, 101 in the files"));
  EXPECT_FALSE(store->dense_tables()[0]->written());
}

TEST_P(ModelUpgrade, ReadsOnlyTheRequestedTables) {
  v1::Schema schema = TestSchema();
  schema.mutable_tables(1)->set_name("wide");  // which the files do not have
  ThreadPool pool(2);
  LoadOptions options;
  options.tables = {"ctr", "dense"};
  const auto store = StoreOf(schema);
  const auto loaded = LoadStore(Disk(), *store, folder_.path(), pool, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(store->sparse_tables()[0]->counts().rows, kKeys);
  EXPECT_EQ(store->sparse_tables()[1]->counts().rows, 0u);
  EXPECT_TRUE(store->dense_tables()[0]->written());
  EXPECT_EQ(loaded->left_out.size(), 2u);  // wide, never
  options.tables = {"wide"};
  EXPECT_EQ(LoadStore(Disk(), *StoreOf(schema), folder_.path(), pool, options).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(ModelUpgrade, RefusesOtherTablesEvenWithTheOption) {
  const auto message = [&](void (*change)(v1::Schema*)) {
    v1::Schema schema = TestSchema();
    change(&schema);
    const absl::Status status = Load(*StoreOf(schema), true);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT(message([](v1::Schema* schema) { schema->mutable_tables(1)->set_name("wide"); }),
              HasSubstr("table 'wide' exists here but not there"));
  EXPECT_THAT(message([](v1::Schema* schema) { schema->mutable_tables()->RemoveLast(); }),
              HasSubstr("table 'deep' exists there but not here"));
  EXPECT_THAT(message([](v1::Schema* schema) {
                schema->mutable_tables(1)->set_accessor(v1::TableSpec::CTR);
              }),
              HasSubstr("a different accessor"));
}

TEST_P(ModelUpgrade, RestoresEqualTablesUnchanged) {
  const auto store = StoreOf(TestSchema());
  ASSERT_TRUE(Load(*store, true).ok());
  Fleet fleet;
  fleet.push_back(std::make_unique<TableStore>(Map(kShardNum, 1), 0));
  ASSERT_TRUE(Load(*fleet[0], true).ok());  // tables from the model
  EXPECT_EQ(Digests(fleet), Digests(FullFleet(1)));
  EXPECT_EQ(*store->sparse_tables()[0]->Digest(), *fleet[0]->sparse_tables()[0]->Digest());
}

}  // namespace
}  // namespace cistern::server
