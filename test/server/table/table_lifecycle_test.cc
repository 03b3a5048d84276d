#include "server/table/table_lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/value/accessor/ctr_accessor.h"
#include "common/value/accessor/ctr_lifecycle.h"
#include "test/common/value/accessor/update_ctr_value.h"
#include "test/server/reference/ctr_lifecycle_golden.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kShards = 5;

std::vector<float> CtrValue(const ValueLayout& layout, float unseen, float delta, double show,
                            double click) {
  std::vector<float> value(layout.full_floats());
  layout.Initialize(1, value.data());
  value[CtrCells::kUnseenDays] = unseen;
  value[CtrCells::kDeltaScore] = delta;
  StoreDouble(&value[CtrCells::kShow], show);
  StoreDouble(&value[CtrCells::kClick], click);
  return value;
}

void Insert(SparseTable& table, Key key, const std::vector<float>& value, bool has_embedx) {
  const ShardMap& map = table.shard_map();
  table.Insert(map.local_index(map.shard(key)), key, value.data(), has_embedx);
}

using Cells = std::map<Key, std::vector<float>>;

Cells RowsOf(const SparseTable& table) {
  Cells rows;
  for (uint32_t local = 0; local < table.local_shard_num(); ++local) {
    EXPECT_TRUE(table
                    .ScanAll(local,
                             [&](Key key, const float* value, bool) {
                               rows[key] = {value, value + table.layout().full_floats()};
                             })
                    .ok());
  }
  return rows;
}

std::vector<Key> SavedKeys(const SparseTable& table, v1::SaveMode mode, uint32_t day) {
  const CtrLifecycle lifecycle(&table.layout(), day);
  std::vector<Key> keys;
  for (const auto& [key, cells] : RowsOf(table)) {
    if (lifecycle.IsSaved(mode, cells.data())) keys.push_back(key);
  }
  return keys;
}

// What a batch does to a row that it meets once, without a click.
void See(SparseTable& table, Key key, uint32_t day) {
  std::vector<float> value(table.layout().full_floats());
  const float no_gradient[8] = {};
  bool has_embedx = false;
  ASSERT_TRUE(*table.Find(key, value.data(), &has_embedx));
  CtrPush push;
  push.show = 1;
  push.embedx_grad = no_gradient;
  push.day = day;
  has_embedx = UpdateCtrValue(table.layout(), 0.1f, key, push, value.data(), has_embedx);
  Insert(table, key, value, has_embedx);
}

// Replays the days of ctr_lifecycle.py, whose numbers come from an independent implementation.
void ExpectDays(const std::vector<GoldenDay>& days, SparseTable& table) {
  ThreadPool pool(2);
  for (size_t n = 0; n < days.size(); ++n) {
    const GoldenDay& golden = days[n];
    SCOPED_TRACE(n);
    for (const auto& [key, cells] : RowsOf(table)) {
      if (key % 7 == n) See(table, key, golden.day);
    }
    EXPECT_EQ(SavedKeys(table, v1::DELTA, golden.day), golden.delta);
    EXPECT_EQ(SavedKeys(table, v1::BASE, golden.day), golden.base);
    UpdateAfterSave(table, v1::DELTA, golden.day, pool, nullptr);
    UpdateAfterSave(table, v1::BATCH, golden.day, pool, nullptr);
    const uint64_t before = table.counts().rows;
    const ShrinkTotals totals = *ShrinkTable(table, golden.day, /*dry_run=*/false, pool);
    EXPECT_EQ(totals.rows, before);
    EXPECT_EQ(totals.removed, before - golden.rows.size());
    const Cells rows = RowsOf(table);
    ASSERT_EQ(rows.size(), golden.rows.size());
    for (const GoldenRow& row : golden.rows) {
      ASSERT_TRUE(rows.count(row.key) == 1) << row.key;
      const std::vector<float>& cells = rows.at(row.key);
      EXPECT_EQ(cells[CtrCells::kUnseenDays], row.unseen) << row.key;
      EXPECT_FLOAT_EQ(cells[CtrCells::kDeltaScore], row.delta) << row.key;
      EXPECT_DOUBLE_EQ(LoadDouble(&cells[CtrCells::kShow]), row.show) << row.key;
      EXPECT_DOUBLE_EQ(LoadDouble(&cells[CtrCells::kClick]), row.click) << row.key;
    }
  }
}

double FirstShow(Key key) {
  return static_cast<double>(key * 7 % 23) + static_cast<double>(key) * 0.25;
}

// The initial state in ctr_lifecycle.py.
std::unique_ptr<SparseTable> GoldenTable(const v1::TableSpec& spec, float (*unseen)(Key)) {
  auto table = Table(spec, Map(kShards, 1));
  for (Key key = 0; key < 40; ++key) {
    const double show = FirstShow(key);
    const double click = std::min(static_cast<double>(key % 5), std::floor(show));
    const float delta = static_cast<float>(key * 13 % 17) / 8;
    Insert(*table, key, CtrValue(table->layout(), unseen(key), delta, show, click), key % 2 == 0);
  }
  return table;
}

TEST(TableLifecycle, ThreeDaysOfCountsMatchTheReference) {
  const auto unseen = [](Key key) { return static_cast<float>(key * 3 % 40); };
  ExpectDays(kGoldenCounts, *GoldenTable(CtrSpec(), unseen));
}

TEST(TableLifecycle, DaysMatchTheReference) {
  v1::TableSpec spec = CtrSpec();
  spec.mutable_ctr()->set_day_id_decay(true);
  const auto unseen = [](Key key) {
    if (key == 11) return 20002.0f;
    return static_cast<float>(key % 3 == 0 ? key % 16 : 20000 - key % 40);
  };
  ExpectDays(kGoldenDays, *GoldenTable(spec, unseen));
}

TEST(TableLifecycle, ADryRunCountsAndChangesNothing) {
  ThreadPool pool(2);
  v1::TableSpec days = CtrSpec();
  days.mutable_ctr()->set_day_id_decay(true);
  for (const v1::TableSpec& spec : {CtrSpec(), days}) {
    auto table = GoldenTable(spec, [](Key key) { return static_cast<float>(key % 13); });
    const Cells before = RowsOf(*table);
    const ShrinkTotals dry = *ShrinkTable(*table, 20000, /*dry_run=*/true, pool);
    EXPECT_EQ(RowsOf(*table), before);
    const ShrinkTotals wet = *ShrinkTable(*table, 20000, /*dry_run=*/false, pool);
    EXPECT_GT(dry.removed, 0u);
    EXPECT_EQ(dry.rows, wet.rows);
    EXPECT_EQ(dry.removed, wet.removed);
    EXPECT_EQ(table->counts().rows, wet.rows - wet.removed);
  }
}

TEST(TableLifecycle, ReturnsTheKeysThatASaveChangedAscending) {
  ThreadPool pool(2);
  auto table = Table(CtrSpec(), Map(2, 1));
  for (const Key key : {40, 8, 4, 2, 5, 3, 7}) {
    // Key 5 is not saved, and key 4 has nothing to reset.
    const auto value = CtrValue(table->layout(), 0, key == 4 ? 0.0f : 1.0f, key == 5 ? 1 : 20, 0);
    Insert(*table, key, value, false);
  }
  std::vector<std::vector<Key>> changed;
  UpdateAfterSave(*table, v1::BASE, 0, pool, &changed);
  EXPECT_THAT(changed, ElementsAre(ElementsAre(2, 8, 40), ElementsAre(3, 7)));
  UpdateAfterSave(*table, v1::BASE, 0, pool, &changed);
  EXPECT_THAT(changed, ElementsAre(IsEmpty(), IsEmpty()));
  UpdateAfterSave(*table, v1::BATCH, 0, pool, &changed);
  EXPECT_THAT(changed, ElementsAre(ElementsAre(2, 4, 8, 40), ElementsAre(3, 5, 7)));
  UpdateAfterSave(*table, v1::ALL, 0, pool, &changed);
  EXPECT_THAT(changed, ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(TableLifecycle, EmbeddingTablesStayUnchanged) {
  ThreadPool pool(1);
  auto table = Table(EmbeddingSpec(), Map(2, 1));
  Insert(*table, 6, TestValue(table->layout(), 6, 1, true), true);
  const uint64_t digest = *table->Digest();
  const ShrinkTotals totals = *ShrinkTable(*table, 0, /*dry_run=*/false, pool);
  EXPECT_EQ(totals.rows, 1u);
  EXPECT_EQ(totals.removed, 0u);
  std::vector<std::vector<Key>> changed;
  for (const v1::SaveMode mode : {v1::ALL, v1::DELTA, v1::BASE, v1::BATCH}) {
    UpdateAfterSave(*table, mode, 0, pool, &changed);
    EXPECT_THAT(changed, ElementsAre(IsEmpty(), IsEmpty()));
  }
  EXPECT_EQ(*table->Digest(), digest);
}

TEST(TableLifecycle, RowsWrittenAfterAShrinkReuseItsRecords) {
  ThreadPool pool(1);
  auto table = Table(CtrSpec(), Map(1, 1));
  const auto write = [&] {
    for (Key key = 0; key < 20000; ++key) {
      Insert(*table, key, CtrValue(table->layout(), 0, 0, 1, 0), key % 2 == 0);
    }
  };
  write();
  const uint64_t memory = table->counts().memory_bytes;
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(ShrinkTable(*table, 0, /*dry_run=*/false, pool)->removed, 20000u);
    EXPECT_EQ(table->counts().rows, 0u);
    EXPECT_EQ(table->counts().embedx_rows, 0u);
    write();
  }
  EXPECT_EQ(table->counts().memory_bytes, memory);
}

}  // namespace
}  // namespace cistern::server
