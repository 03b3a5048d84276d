// Which rows are due after passes whose numbers a float cannot hold. What commits remove otherwise:
// test/server/commit/bounded_commit_test.cc.
#include "server/table/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/table/table_specs.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

constexpr PassId kLate = (PassId{1} << 24) + 100;

// Rows 1 .. 6 of one shard, the row of key k last pushed by pass kLate - 6 + k.
std::unique_ptr<SparseTable> LateTable(const v1::TableSpec& spec) {
  auto table = Table(spec, Map(1, 1));
  Rows rows;
  for (Key key = 1; key <= 6; ++key) {
    std::vector<float> value = TestValue(table->layout(), key, 1, true);
    value[table->layout().last_pass_index()] = CellOfPass(kLate - 6 + key);
    rows.Add(key, value, true);
  }
  ThreadPool pool(1);
  table->Write({rows.block()}, pool);
  CISTERN_CHECK(FindDue(*table, kLate, pool).ok());
  return table;
}

TEST(Eviction, ExpiresByTheExactPassWhereFloatsAreCoarse) {
  for (uint32_t passes = 1; passes <= 6; ++passes) {
    v1::TableSpec spec = EmbeddingSpec();
    spec.mutable_bounds()->set_expire_passes(passes);
    const auto table = LateTable(spec);
    const std::shared_ptr<const DueRows> due = table->due(0);
    ASSERT_NE(due, nullptr);
    std::vector<Key> expected;  // those that pass kLate + 1 and passes - 1 before it did not have
    for (Key key = 1; key <= 6 && kLate - 6 + key + passes <= kLate + 1; ++key) {
      expected.push_back(key);
    }
    EXPECT_EQ(due->keys, expected) << passes;
  }
}

TEST(Eviction, EvictsTheOldestPassWhereFloatsAreCoarse) {
  v1::TableSpec spec = EmbeddingSpec();
  spec.mutable_bounds()->set_max_rows(3);
  EXPECT_THAT(LateTable(spec)->due(0)->keys, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace cistern
