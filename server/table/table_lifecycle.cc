#include "server/table/table_lifecycle.h"

#include <algorithm>

#include "common/value/accessor.h"
#include "common/value/row_lifecycle.h"

namespace cistern {

absl::Status CheckDay(const TableStore& store, uint32_t day) {
  for (const auto& table : store.sparse_tables()) {
    CISTERN_RETURN_IF_ERROR(CheckDay(table->spec(), day));
  }
  return absl::OkStatus();
}

ShrinkTotals ShrinkTable(SparseTable& table, uint32_t day, bool dry_run, ThreadPool& pool) {
  ShrinkTotals totals;
  totals.rows = table.counts().rows;
  const std::unique_ptr<RowLifecycle> lifecycle =
      table.layout().accessor().MakeLifecycle(table.layout(), day);
  if (lifecycle == nullptr) return totals;
  std::vector<uint64_t> removed(table.local_shard_num(), 0);
  pool.ParallelFor(removed.size(), [&](size_t local) {
    table.Sweep(static_cast<uint32_t>(local), [&](Key, float* value, bool) {
      const bool keep = dry_run ? lifecycle->WouldKeep(value) : lifecycle->Shrink(value);
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
  const std::unique_ptr<RowLifecycle> lifecycle =
      table.layout().accessor().MakeLifecycle(table.layout(), day);
  if (lifecycle == nullptr || mode == v1::ALL) return;
  pool.ParallelFor(table.local_shard_num(), [&](size_t local) {
    std::vector<Key> keys;
    table.Sweep(static_cast<uint32_t>(local), [&](Key key, float* value, bool) {
      if (lifecycle->UpdateAfterSave(mode, value)) keys.push_back(key);
      return RowFate::kKeep;
    });
    if (changed == nullptr) return;
    std::sort(keys.begin(), keys.end());
    (*changed)[local] = std::move(keys);
  });
}

}  // namespace cistern
