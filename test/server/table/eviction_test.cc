// Which rows are due after passes whose numbers a float cannot hold. What commits remove otherwise:
// test/server/commit/bounded_commit_test.cc.
#include "server/table/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/pass_days.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {
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
  CISTERN_CHECK(FindDue(*table, {kLate}, pool).ok());
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

TEST(Eviction, ReadsRowsForDaysOnlyWhenADayBegins) {
  v1::TableSpec spec = EmbeddingSpec();
  spec.mutable_bounds()->set_expire_days(1);
  const auto table = Table(spec, Map(1, 1));
  ThreadPool pool(1);
  const auto write = [&](Key key, PassId last_pass) {
    std::vector<float> value = TestValue(table->layout(), key, 1, true);
    value[table->layout().last_pass_index()] = CellOfPass(last_pass);
    Rows rows;
    rows.Add(key, value, true);
    table->Write({rows.block()}, pool);
  };
  DatedPass pass = {7, {}};
  AddPassDay(1, 100, 1, &pass.days);
  AddPassDay(7, 101, 1, &pass.days);
  table->SetDue(0, 6, nullptr);
  write(1, 6);
  // Pass 7 begins a day: what the day before had last is due.
  const auto due = [&] { return PlanEviction(*table, pass, {}, pool)->shards[0].due; };
  ASSERT_NE(due(), nullptr);
  EXPECT_THAT(due()->keys, ElementsAre(1));
  // Pass 8 is on the same day as pass 7, after which it was decided what is due: no row is read.
  table->SetDue(0, 7, nullptr);
  pass.pass = 8;
  EXPECT_EQ(due(), nullptr);
  // Rows that were loaded since are read.
  const std::vector<float> value(table->layout().full_floats(), 1);
  table->Insert(0, 2, value.data(), true);
  ASSERT_NE(due(), nullptr);
  EXPECT_THAT(due()->keys, ElementsAre(1, 2));
}

// The days of another fleet may differ from those after which the last due rows were decided.
TEST(Eviction, AReplicaRemovesWhatItSaysAndDecidesFromAllRows) {
  v1::TableSpec spec = EmbeddingSpec();
  ThreadPool pool(1);
  DatedPass pass = {8, {}};
  AddPassDay(1, 100, 1, &pass.days);
  AddPassDay(6, 101, 1, &pass.days);
  for (const bool is_bounded : {true, false}) {
    if (is_bounded) spec.mutable_bounds()->set_expire_days(1);
    if (!is_bounded) spec.clear_bounds();
    const auto table = Table(spec, Map(1, 1));
    Rows rows;
    for (const Key key : {1, 2, 3}) {
      std::vector<float> value = TestValue(table->layout(), key, 1, true);
      if (is_bounded) value[table->layout().last_pass_index()] = CellOfPass(key == 3 ? 6 : 5);
      rows.Add(key, value, true);
    }
    table->Write({rows.block()}, pool);
    table->SetDue(0, 7, nullptr);
    const auto plan = PlanReplica(*table, pass, {}, {{2}}, pool);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Eviction::Shard& shard = plan->shards[0];
    EXPECT_THAT(shard.removed, ElementsAre(2));
    EXPECT_EQ(shard.by_bounds.expired + shard.by_bounds.evicted, 0u);
    EXPECT_EQ(shard.due != nullptr, is_bounded);
    if (is_bounded) {
      EXPECT_THAT(shard.due->keys, ElementsAre(1));
    }
    EXPECT_EQ(PlanReplica(*table, pass, {}, {}, pool)->shards.empty(), !is_bounded);
  }
}

}  // namespace
}  // namespace cistern::server
