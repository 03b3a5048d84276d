// A pass stage with tables of every kind, and pushes for it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/base/check.h"
#include "server/commit/commit_state.h"
#include "server/commit/staging.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {

using Code = absl::StatusCode;

// A server of one table of embeddings (4 cells), one of ctr values and a dense one (10 rows of 2
// columns); server 0 of 2 with 4 shards, so it owns even keys and dense rows 0 to 5.
class CommitStateTest : public testing::Test {
 protected:
  CommitStateTest() : pool_(2), store_(Map(4, 2), 0), stage_(&store_, &pool_, 1 << 20) {
    v1::Schema schema;
    *schema.add_tables() = EmbeddingSpec(4, "deep");
    *schema.add_tables() = CtrSpec(8, "ctr");
    v1::DenseTableSpec* dense = schema.add_dense_tables();
    dense->set_name("mlp");
    dense->set_rows(10);
    for (const char* column : {"weight", "state"}) dense->add_columns(column);
    *schema.add_dense_tables() = *dense;  // one column, to which gradients are added
    dense = schema.mutable_dense_tables(1);
    dense->set_name("sums");
    dense->mutable_columns()->DeleteSubrange(1, 1);
    dense->set_columns(0, "w");
    dense->mutable_rule()->set_kind(v1::DenseRule::SUM);
    CISTERN_CHECK(store_.Create(schema).ok());
  }

  SparseTable& table() { return *store_.sparse_tables()[0]; }

  // The array with a change: With(push.values, [](auto& values) { values.pop_back(); }).
  template <class T, class Edit>
  static SharedArray<T> With(const SharedArray<T>& array, const Edit& edit) {
    std::vector<T> values(array.begin(), array.end());
    edit(values);
    return values;
  }

  StagedPush SparsePush(const std::vector<Key>& keys, int version = 1, TableId id = 0) {
    StagedPush push;
    push.table = id;
    push.keys = keys;
    std::vector<float> values;
    for (Key key : keys) {
      const auto value = TestValue(store_.sparse_tables()[id]->layout(), key, version, true);
      values.insert(values.end(), value.begin(), value.end());
    }
    push.values = std::move(values);
    push.has_embedx = std::vector<uint8_t>(keys.size(), 1);
    push.body_hash = 1000 * keys.size() + static_cast<uint64_t>(version);
    return push;
  }

  StagedPush DensePush(uint64_t start, uint64_t rows, float value) {
    StagedPush push;
    push.dense = true;
    push.start = start;
    push.values = std::vector<float>(rows * 2, value);
    push.body_hash = start + 1;
    return push;
  }

  // The cells of an even key; empty if absent.
  std::vector<float> Row(Key key) {
    std::vector<float> value(table().layout().full_floats());
    bool has_embedx = false;
    return *table().Find(key, value.data(), &has_embedx) ? value : std::vector<float>();
  }

  uint64_t Digest() {
    uint64_t sum = 0;
    for (const auto& sparse : store_.sparse_tables()) sum += *sparse->Digest();
    for (const auto& dense : store_.dense_tables()) sum += dense->Digest();
    return sum;
  }

  // In memory only.
  absl::Status Prepare(PassId pass, uint64_t* rows) {
    CommitState::Prepared prepared;
    const absl::Status status = stage_.Prepare(pass, {}, &prepared);
    *rows = prepared.rows;
    return status;
  }
  absl::Status Commit(PassId pass) {
    bool adopted = false;
    return stage_.Commit(pass, 0, {}, &adopted);
  }
  absl::Status PrepareAndCommit(PassId pass) {
    uint64_t rows = 0;
    CISTERN_RETURN_IF_ERROR(Prepare(pass, &rows));
    return Commit(pass);
  }

  // Commits empty passes 1 .. pass.
  void CommitEmptyPasses(PassId pass) {
    for (PassId p = 1; p <= pass; ++p) {
      ASSERT_TRUE(stage_.Begin(p).ok());
      ASSERT_TRUE(stage_.Seal(p, 0, 0).ok());
      ASSERT_TRUE(PrepareAndCommit(p).ok());
    }
  }

  ThreadPool pool_;
  TableStore store_;
  CommitState stage_;
};

#define EXPECT_CODE(expression, expected_code) EXPECT_EQ((expression).code(), expected_code)

}  // namespace cistern::server
