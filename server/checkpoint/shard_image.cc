#include "server/checkpoint/shard_image.h"

#include <algorithm>
#include <iterator>

#include "common/value/row_digest.h"
#include "server/checkpoint/sort_by_key.h"

namespace cistern {
namespace {

using Stored = RowMap::Stored;

std::vector<Stored> StagedByKey(const ValueLayout& layout, const StagedRows& staged) {
  std::vector<Stored> rows;
  size_t count = 0;
  for (const KeyRange& range : staged.ranges) count += range.end - range.begin;
  rows.reserve(count);
  for (const KeyRange& range : staged.ranges) {
    const ValueBlock& block = staged.blocks[range.block];
    for (uint32_t i = range.begin; i < range.end; ++i) {
      // As the table stores it.
      const bool has_embedx = block.has_embedx[i] != 0 || !layout.embedx_is_optional();
      rows.push_back({block.keys[i], block.values + size_t{i} * layout.full_floats(), has_embedx});
    }
  }
  SortByKey(&rows);
  return rows;
}

std::vector<Stored> AllByKey(const RowMap& table) {
  std::vector<Stored> rows = table.All();
  SortByKey(&rows);
  return rows;
}

// The table's rows of the staged or touched keys, by key; cells are null where the table has no
// such row.
std::vector<Stored> OldByKey(const RowMap& table, const std::vector<Stored>& staged,
                             absl::Span<const Key> touched) {
  std::vector<Key> keys, others(touched.begin(), touched.end()), all;
  keys.reserve(staged.size());
  for (const Stored& row : staged) keys.push_back(row.key);
  if (others.empty()) return table.Locate(keys);
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  std::set_union(keys.begin(), keys.end(), others.begin(), others.end(), std::back_inserter(all));
  return table.Locate(all);
}

// Calls visit(staged, old) for every key of either list, in order. Both lists are sorted; cells are
// null where a list lacks the key.
template <typename Visit>
void WalkBoth(const ValueLayout& layout, const std::vector<Stored>& staged,
              const std::vector<Stored>& old, Visit visit) {
  constexpr size_t kAhead = 16;  // the prefetch distance in rows
  const auto fetch = [&](const Stored& row) {
    if (row.cells == nullptr) return;
    const char* const cells = reinterpret_cast<const char*>(row.cells);
    __builtin_prefetch(cells);
    __builtin_prefetch(cells + layout.floats(row.has_embedx) * sizeof(float) - 1);
  };
  size_t s = 0, o = 0;
  while (s < staged.size() || o < old.size()) {
    if (o + kAhead < old.size()) fetch(old[o + kAhead]);
    if (s + kAhead < staged.size()) fetch(staged[s + kAhead]);
    const bool has_staged = s < staged.size() && (o == old.size() || staged[s].key <= old[o].key);
    const bool has_old = o < old.size() && (!has_staged || old[o].key == staged[s].key);
    visit(has_staged ? staged[s] : Stored(), has_old ? old[o] : Stored());
    s += has_staged;
    o += has_old;
  }
}

}  // namespace

ShardTotals TotalsOf(const SparseTable& table, uint32_t local) {
  ShardTotals totals;
  RowDigest digest(table.layout());
  table.Scan(local, 0, SIZE_MAX, [&](Key key, const float* value, bool has_embedx) {
    ++totals.rows;
    totals.digest += digest(key, value, has_embedx);
  });
  return totals;
}

ShardImage ImageOfShard(const SparseTable& table, uint32_t local, const StagedRows& staged_rows,
                        absl::Span<const Key> touched, ImageKind kind, const ShardTotals& before) {
  const std::vector<Stored> staged = StagedByKey(table.layout(), staged_rows);
  ShardImage image;
  // A base visits all rows, so it needs no totals to start from.
  if (kind != ImageKind::kBase) image.after = before;
  RowBlockBuilder builder(&table.layout());
  RowDigest digest(table.layout());
  const auto take = [&](const Stored& fresh, const Stored& old) {
    const Stored& row = fresh.cells != nullptr ? fresh : old;
    if (row.cells == nullptr) return;  // touched, then removed
    image.created += old.cells == nullptr;
    if (kind == ImageKind::kBase) {
      ++image.after.rows;
      image.after.digest += digest(row.key, row.cells, row.has_embedx);
    } else if (fresh.cells != nullptr) {
      if (old.cells != nullptr) image.after.digest -= digest(old.key, old.cells, old.has_embedx);
      image.after.rows += old.cells == nullptr;
      image.after.digest += digest(row.key, row.cells, row.has_embedx);
    }
    if (kind != ImageKind::kTotals) builder.Add(row.key, row.cells, row.has_embedx);
  };
  table.ReadShard(local, [&](const RowMap& rows) {
    const absl::Span<const Key> others =
        kind == ImageKind::kDelta ? touched : absl::Span<const Key>();
    WalkBoth(table.layout(), staged,
             kind == ImageKind::kBase ? AllByKey(rows) : OldByKey(rows, staged, others), take);
  });
  image.rows = builder.rows();
  image.blocks = builder.Take(/*finish=*/true);
  return image;
}

}  // namespace cistern
