#include "server/table/table_lifecycle.h"

#include <algorithm>

#include "common/value/accessor.h"
#include "common/value/row_lifecycle.h"

namespace cistern::server {

absl::Status CheckDay(const TableStore& store, uint32_t day) {
  for (const auto& table : store.sparse_tables()) {
    CISTERN_RETURN_IF_ERROR(cistern::CheckDay(table->spec(), day));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShrinkTotals> ShrinkTable(SparseTable& table, uint32_t day, bool dry_run,
                                         ThreadPool& pool) {
  ShrinkTotals totals;
  totals.rows = table.counts().rows;
  const std::shared_ptr<const RowLifecycle> lifecycle =
      table.layout().accessor().MakeLifecycle(table.layout(), day);
  if (lifecycle == nullptr) return totals;
  std::vector<uint64_t> removed(table.local_shard_num(), 0);
  std::vector<absl::Status> counted(removed.size());
  pool.ParallelFor(removed.size(), [&](size_t local) {
    // Rows in files shrink when they are read, so they are counted before.
    if (dry_run || table.tiered()) {
      counted[local] = table.ScanAll(
          static_cast<uint32_t>(local),
          [&](Key, const float* value, bool) { removed[local] += !lifecycle->WouldKeep(value); });
    }
    if (dry_run || !counted[local].ok()) return;
    const RowChange shrink = [lifecycle](Key, float* value, bool) {
      return lifecycle->Shrink(value) ? RowFate::kKeep : RowFate::kRemove;
    };
    table.ChangeAll(static_cast<uint32_t>(local), shrink,
                    [&](Key key, float* value, bool has_embedx) {
                      const RowFate fate = shrink(key, value, has_embedx);
                      if (!table.tiered()) removed[local] += fate == RowFate::kRemove;
                      return fate;
                    });
  });
  for (const absl::Status& status : counted) CISTERN_RETURN_IF_ERROR(status);
  for (const uint64_t n : removed) totals.removed += n;
  return totals;
}

void UpdateAfterSave(SparseTable& table, v1::SaveMode mode, uint32_t day, ThreadPool& pool,
                     std::vector<std::vector<Key>>* changed) {
  if (changed != nullptr) changed->assign(table.local_shard_num(), {});
  const std::shared_ptr<const RowLifecycle> lifecycle =
      table.layout().accessor().MakeLifecycle(table.layout(), day);
  if (lifecycle == nullptr || mode == v1::ALL) return;
  pool.ParallelFor(table.local_shard_num(), [&](size_t local) {
    std::vector<Key> keys;
    table.ChangeAll(
        static_cast<uint32_t>(local),
        [lifecycle, mode](Key, float* value, bool) {
          lifecycle->UpdateAfterSave(mode, value);
          return RowFate::kKeep;
        },
        [&](Key key, float* value, bool) {
          if (lifecycle->UpdateAfterSave(mode, value)) keys.push_back(key);
          return RowFate::kKeep;
        });
    if (changed == nullptr) return;
    std::sort(keys.begin(), keys.end());
    (*changed)[local] = std::move(keys);
  });
}

}  // namespace cistern::server
