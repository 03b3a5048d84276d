#include "server/table/table_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;

v1::Schema TwoTables() {
  v1::Schema schema;
  *schema.add_tables() = EmbeddingSpec(4, "wide");
  *schema.add_tables() = CtrSpec(8, "deep");
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("mlp");
  dense->set_rows(10);
  dense->add_columns("weight");
  return schema;
}

TEST(TableStore, CreatesTheTablesOfASchemaOnce) {
  TableStore store(Map(8, 2), 1);
  EXPECT_EQ(store.schema_hash(), 0u);
  ASSERT_TRUE(store.Create(TwoTables()).ok());
  EXPECT_NE(store.schema_hash(), 0u);
  SparseTable* deep = *store.sparse(1);
  EXPECT_EQ(deep->spec().name(), "deep");
  EXPECT_EQ(deep->local_shard_num(), 4u);
  EXPECT_EQ((*store.dense(0))->range().begin, 6u);
  ASSERT_TRUE(store.Create(TwoTables()).ok());
  EXPECT_EQ(*store.sparse(1), deep);
  EXPECT_EQ(store.sparse(2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.dense(1).status().code(), absl::StatusCode::kNotFound);
}

TEST(TableStore, RefusesAnotherSchemaAndNamesTheDifference) {
  TableStore store(Map(8, 1), 0);
  ASSERT_TRUE(store.Create(TwoTables()).ok());
  v1::Schema other = TwoTables();
  other.mutable_tables(1)->set_dim(16);
  const absl::Status status = store.Create(other);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dim"));
  EXPECT_EQ((*store.sparse(1))->layout().dim(), 8u);
}

TEST(TableStore, CreatesAllTablesOrNone) {
  TableStore store(Map(8, 1), 0);
  v1::Schema schema = TwoTables();
  schema.mutable_tables(1)->set_dim(100000);
  EXPECT_EQ(store.Create(schema).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(store.sparse_tables().empty());
  EXPECT_TRUE(store.dense_tables().empty());
  EXPECT_TRUE(store.Create(TwoTables()).ok());
}

TEST(TableStore, ClearKeepsTheSchema) {
  TableStore store(Map(8, 1), 0);
  ASSERT_TRUE(store.Create(TwoTables()).ok());
  const std::vector<float> value(4, 1.0f), cell(1, 1.0f);
  store.sparse_tables()[0]->Insert(0, 8, value.data(), true);
  ASSERT_TRUE(store.dense_tables()[0]->Write(0, 1, cell.data()).ok());
  store.Clear();
  EXPECT_EQ(store.sparse_tables()[0]->counts().rows, 0u);
  EXPECT_FALSE(store.dense_tables()[0]->written());
  EXPECT_NE(store.schema_hash(), 0u);
}

}  // namespace
}  // namespace cistern::server
