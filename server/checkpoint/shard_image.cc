#include "server/checkpoint/shard_image.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/value/row_digest.h"
#include "server/checkpoint/sort_by_key.h"

namespace cistern::server {
namespace {

using Stored = RowMap::Stored;

constexpr size_t kColdBytes = size_t{4} << 20;  // of rows that are read together

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

// The keys that are staged, touched or removed, ascending.
std::vector<Key> KeysOf(const std::vector<Stored>& staged, absl::Span<const Key> touched,
                        absl::Span<const Key> removed) {
  std::vector<Key> keys, others(touched.begin(), touched.end()), all;
  others.insert(others.end(), removed.begin(), removed.end());
  keys.reserve(staged.size());
  for (const Stored& row : staged) keys.push_back(row.key);
  if (others.empty()) return keys;
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  std::set_union(keys.begin(), keys.end(), others.begin(), others.end(), std::back_inserter(all));
  return all;
}

// The rows of `keys` (ascending) that are in files and not in memory, and their hashes.
absl::StatusOr<std::vector<ColdDigest>> DigestCold(const SparseTable& table, uint32_t local,
                                                   const std::vector<Key>& keys) {
  const std::shared_ptr<const ColdRows> cold = table.cold(local);
  if (cold == nullptr) return std::vector<ColdDigest>();
  std::vector<Key> missing;
  table.ReadShard(local, [&](const RowMap& rows) {
    for (const Stored& row : rows.Locate(keys)) {
      if (row.cells == nullptr) missing.push_back(row.key);
    }
  });
  std::vector<ColdDigest> found = table.KnownDigests(local, missing);
  // What no pull has read: a few rows at a time, because there may be many.
  const size_t stride = table.layout().full_floats();
  const size_t most = std::max<size_t>(1, kColdBytes / (stride * sizeof(float)));
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;
  std::vector<ColdRead> reads;
  const size_t known = found.size();
  RowDigest digest(table.layout());
  for (size_t i = 0, k = 0; i < missing.size();) {
    reads.clear();
    for (; i < missing.size() && reads.size() < most; ++i) {
      while (k < known && found[k].key < missing[i]) ++k;
      if (k == known || found[k].key != missing[i]) reads.push_back({missing[i], nullptr, nullptr});
    }
    values.resize(reads.size() * stride);
    has_embedx.resize(reads.size());
    for (size_t r = 0; r < reads.size(); ++r) {
      reads[r].value = &values[r * stride];
      reads[r].has_embedx = &has_embedx[r];
    }
    CISTERN_RETURN_IF_ERROR(
        AddContext(cold->Read(reads), absl::StrCat("table '", table.spec().name(), "'")));
    for (const ColdRead& read : reads) {
      if (*read.has_embedx == kAbsent) continue;
      found.push_back({read.key, digest(read.key, read.value, *read.has_embedx != 0)});
    }
  }
  std::inplace_merge(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(known), found.end(),
                     [](const ColdDigest& a, const ColdDigest& b) { return a.key < b.key; });
  return found;
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

absl::StatusOr<ShardTotals> TotalsOf(const SparseTable& table, uint32_t local) {
  ShardTotals totals;
  RowDigest digest(table.layout());
  CISTERN_RETURN_IF_ERROR(table.ScanAll(local, [&](Key key, const float* value, bool has_embedx) {
    ++totals.rows;
    totals.digest += digest(key, value, has_embedx);
  }));
  return totals;
}

absl::StatusOr<ShardImage> ImageOfShard(const SparseTable& table, uint32_t local,
                                        const StagedRows& staged_rows,
                                        absl::Span<const Key> touched, ImageKind kind,
                                        const ShardTotals& before, size_t block_bytes) {
  const std::vector<Stored> staged = StagedByKey(table.layout(), staged_rows);
  ShardImage image;
  // A base visits all rows, so it needs no totals to start from.
  if (kind != ImageKind::kBase) image.after = before;
  RowBlockBuilder builder(&table.layout(), 0, block_bytes);
  RowDigest digest(table.layout());
  std::vector<ColdDigest> cold;  // the old rows that are in files
  size_t next_cold = 0;
  const absl::Span<const Key> removed = staged_rows.removed;
  const auto take = [&](const Stored& fresh, const Stored& old) {
    const Stored& row = fresh.cells != nullptr ? fresh : old;
    while (next_cold < cold.size() && cold[next_cold].key < row.key) ++next_cold;
    const bool in_file = next_cold < cold.size() && cold[next_cold].key == row.key;
    const bool is_new = old.cells == nullptr && !in_file;
    if (fresh.cells == nullptr && std::binary_search(removed.begin(), removed.end(), row.key)) {
      if (kind == ImageKind::kBase) return;
      if (!is_new) {
        --image.after.rows;
        image.after.digest -=
            in_file ? cold[next_cold].digest : digest(old.key, old.cells, old.has_embedx);
      }
      if (kind == ImageKind::kDelta) builder.AddRemoved(row.key);
      return;
    }
    if (row.cells == nullptr) {  // touched, and in memory no more
      const bool is_gone = kind == ImageKind::kDelta && table.layout().is_bounded() && !in_file;
      if (is_gone) builder.AddRemoved(row.key);
      return;
    }
    image.created += is_new;
    if (kind == ImageKind::kBase) {
      ++image.after.rows;
      image.after.digest += digest(row.key, row.cells, row.has_embedx);
    } else if (fresh.cells != nullptr) {
      if (old.cells != nullptr) {
        image.after.digest -= digest(old.key, old.cells, old.has_embedx);
      } else if (in_file) {
        image.after.digest -= cold[next_cold].digest;
      }
      image.after.rows += is_new;
      image.after.digest += digest(row.key, row.cells, row.has_embedx);
    }
    if (kind != ImageKind::kTotals) builder.Add(row.key, row.cells, row.has_embedx);
  };
  if (kind == ImageKind::kBase) {
    table.ReadShard(
        local, [&](const RowMap& rows) { WalkBoth(table.layout(), staged, AllByKey(rows), take); });
  } else {
    const std::vector<Key> keys =
        KeysOf(staged, kind == ImageKind::kDelta ? touched : absl::Span<const Key>(), removed);
    CISTERN_ASSIGN_OR_RETURN(cold, DigestCold(table, local, keys));
    table.ReadShard(local, [&](const RowMap& rows) {
      WalkBoth(table.layout(), staged, rows.Locate(keys), take);
    });
  }
  image.rows = builder.rows();
  image.blocks = builder.Take(/*finish=*/true);
  return image;
}

absl::StatusOr<ShardTotals> StreamShard(
    const SparseTable& table, uint32_t local, const StagedRows& staged_rows, size_t block_bytes,
    const std::function<absl::Status(const std::vector<RowBlockBuilder::Block>&)>& append) {
  std::vector<Stored> newest;  // of the rows that are staged or in memory
  table.ReadShard(local, [&](const RowMap& rows) {
    WalkBoth(table.layout(), StagedByKey(table.layout(), staged_rows), AllByKey(rows),
             [&](const Stored& fresh, const Stored& old) {
               newest.push_back(fresh.cells != nullptr ? fresh : old);
             });
  });
  const absl::Span<const Key> removed = staged_rows.removed;  // none of them is staged
  ShardTotals totals;
  RowDigest digest(table.layout());
  RowBlockBuilder builder(&table.layout(), 0, block_bytes);
  const auto add = [&](Key key, const float* value, bool has_embedx) {
    if (std::binary_search(removed.begin(), removed.end(), key)) return;
    ++totals.rows;
    totals.digest += digest(key, value, has_embedx);
    builder.Add(key, value, has_embedx);
  };
  size_t next = 0;
  const std::shared_ptr<const ColdRows> cold = table.cold(local);
  for (uint64_t part = 0; cold != nullptr && part < cold->part_num(); ++part) {
    CISTERN_RETURN_IF_ERROR(AddContext(
        cold->ReadPart(part,
                       [&](Key key, const float* value, bool has_embedx) {
                         for (; next < newest.size() && newest[next].key < key; ++next) {
                           add(newest[next].key, newest[next].cells, newest[next].has_embedx);
                         }
                         const bool is_newer = next < newest.size() && newest[next].key == key;
                         if (!is_newer) add(key, value, has_embedx);
                         return append(builder.Take(/*finish=*/false));
                       }),
        absl::StrCat("table '", table.spec().name(), "'")));
  }
  for (; next < newest.size(); ++next) {
    add(newest[next].key, newest[next].cells, newest[next].has_embedx);
  }
  CISTERN_RETURN_IF_ERROR(append(builder.Take(/*finish=*/true)));
  return totals;
}

}  // namespace cistern::server
