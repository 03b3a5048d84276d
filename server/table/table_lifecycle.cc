#include "server/table/table_lifecycle.h"

#include <algorithm>
#include <array>

#include "common/value/ctr_lifecycle.h"

namespace cistern {
namespace {

// The statistics are the only cells that a shrink reads and writes.
constexpr size_t kStatisticsCells = ValueLayout::kEmbedW;

// Whether a shrink would keep a row. Does not change the row.
bool WouldKeep(const CtrLifecycle& lifecycle, const float* value) {
  std::array<float, kStatisticsCells> statistics;
  std::copy_n(value, statistics.size(), statistics.begin());
  return lifecycle.Shrink(statistics.data());
}

}  // namespace

absl::Status CheckDay(const TableStore& store, uint32_t day) {
  for (const auto& table : store.sparse_tables()) {
    CISTERN_RETURN_IF_ERROR(CheckDay(table->spec(), day));
  }
  return absl::OkStatus();
}

ShrinkTotals ShrinkTable(SparseTable& table, uint32_t day, bool dry_run, ThreadPool& pool) {
  ShrinkTotals totals;
  totals.rows = table.counts().rows;
  if (!table.layout().is_ctr()) return totals;
  const CtrLifecycle lifecycle(&table.layout(), day);
  std::vector<uint64_t> removed(table.local_shard_num(), 0);
  pool.ParallelFor(removed.size(), [&](size_t local) {
    table.Sweep(static_cast<uint32_t>(local), [&](Key, float* value, bool) {
      const bool keep = dry_run ? WouldKeep(lifecycle, value) : lifecycle.Shrink(value);
      removed[local] += !keep;
      return keep || dry_run ? RowFate::kKeep : RowFate::kRemove;
    });
  });
  for (const uint64_t n : removed) totals.removed += n;
  return totals;
}

void UpdateAfterSave(SparseTable& table, v1::SaveMode mode, uint32_t day, ThreadPool& pool,
                     std::vector<std::vector<Key>>* changed) {
  if (changed != nullptr) changed->assign(table.local_shard_num(), {});
  if (!table.layout().is_ctr() || mode == v1::ALL) return;
  const CtrLifecycle lifecycle(&table.layout(), day);
  pool.ParallelFor(table.local_shard_num(), [&](size_t local) {
    std::vector<Key> keys;
    table.Sweep(static_cast<uint32_t>(local), [&](Key key, float* value, bool) {
      if (lifecycle.UpdateAfterSave(mode, value)) keys.push_back(key);
      return RowFate::kKeep;
    });
    if (changed == nullptr) return;
    std::sort(keys.begin(), keys.end());
    (*changed)[local] = std::move(keys);
  });
}

}  // namespace cistern
