#include "server/checkpoint/shard_image.h"

#include <algorithm>
#include <iterator>

#include "common/row_digest.h"
#include "common/rpc/frame.h"

namespace cistern {
namespace {

constexpr size_t kBatchRows = 1024;  // read from the table at a time

// A row of the image: where its new value is staged, or that it is the table's.
struct ImageRow {
  Key key = 0;
  const float* staged = nullptr;  // null: the table's value stands
  bool full = false;

  bool operator<(const ImageRow& other) const { return key < other.key; }
};

std::vector<ImageRow> StagedByKey(const SparseTable& table, const StagedRows& staged) {
  const ValueLayout& layout = table.layout();
  std::vector<ImageRow> rows;
  size_t count = 0;
  for (const KeyRange& range : staged.ranges) count += range.end - range.begin;
  rows.reserve(count);
  for (const KeyRange& range : staged.ranges) {
    const ValueBlock& block = staged.blocks[range.block];
    for (uint32_t i = range.begin; i < range.end; ++i) {
      // As the table stores it: only ctr values can be short.
      const bool full = block.full[i] != 0 || !layout.is_ctr();
      rows.push_back({block.keys[i], block.values + size_t{i} * layout.full_floats(), full});
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<ImageRow> TableRows(std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<ImageRow> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) rows[i].key = keys[i];
  return rows;
}

std::vector<Key> AllKeys(const SparseTable& table, uint32_t local) {
  std::vector<Key> keys;
  table.Scan(local, 0, SIZE_MAX, [&](Key key, const float*, bool) { keys.push_back(key); });
  return keys;
}

// Both lists in order; a staged row takes the place of the table's.
std::vector<ImageRow> Merge(std::vector<ImageRow> staged, const std::vector<ImageRow>& others) {
  if (others.empty()) return staged;
  std::vector<ImageRow> merged;
  merged.reserve(staged.size() + others.size());
  std::set_union(staged.begin(), staged.end(), others.begin(), others.end(),
                 std::back_inserter(merged));
  return merged;
}

// Reads the table's values of the rows batch by batch, and hands out old and new side by side.
class ImageWalk {
 public:
  explicit ImageWalk(const SparseTable& table)
      : table_(table), old_(kBatchRows * table.layout().full_floats()), old_full_(kBatchRows) {}

  // visit(row, old value or null where the row is new, whether that was full)
  template <typename Visit>
  void Run(absl::Span<const ImageRow> rows, Visit visit) {
    const size_t stride = table_.layout().full_floats();
    for (size_t begin = 0; begin < rows.size(); begin += kBatchRows) {
      const absl::Span<const ImageRow> batch = rows.subspan(begin, kBatchRows);
      keys_.clear();
      for (const ImageRow& row : batch) keys_.push_back(row.key);
      table_.Pull(keys_, /*absent_is_zero=*/true, old_.data(), old_full_.data());
      for (size_t i = 0; i < batch.size(); ++i) {
        const bool absent = old_full_[i] == kAbsent;
        visit(batch[i], absent ? nullptr : &old_[i * stride], old_full_[i] == 1);
      }
    }
  }

 private:
  const SparseTable& table_;
  std::vector<Key> keys_;
  std::vector<float> old_;
  std::vector<uint8_t> old_full_;
};

}  // namespace

ShardTotals TotalsOf(const SparseTable& table, uint32_t local) {
  ShardTotals totals;
  RowDigest digest(table.layout());
  table.Scan(local, 0, SIZE_MAX, [&](Key key, const float* value, bool full) {
    ++totals.rows;
    totals.digest += digest(key, value, full);
  });
  return totals;
}

ShardImage ImageOfShard(const SparseTable& table, uint32_t local, const StagedRows& staged,
                        absl::Span<const Key> touched, ImageKind kind, const ShardTotals& before) {
  std::vector<ImageRow> rows = StagedByKey(table, staged);
  if (kind == ImageKind::kDelta) {
    rows = Merge(std::move(rows), TableRows({touched.begin(), touched.end()}));
  } else if (kind == ImageKind::kBase) {
    rows = Merge(std::move(rows), TableRows(AllKeys(table, local)));
  }
  ShardImage image;
  image.after = before;
  RowBlockBuilder builder(&table.layout());
  RowDigest digest(table.layout());
  ImageWalk(table).Run(rows, [&](const ImageRow& row, const float* old, bool old_full) {
    const float* value = row.staged != nullptr ? row.staged : old;
    if (value == nullptr) return;  // touched, and removed since
    const bool full = row.staged != nullptr ? row.full : old_full;
    if (row.staged != nullptr) {
      if (old != nullptr) image.after.digest -= digest(row.key, old, old_full);
      image.after.rows += old == nullptr;
      image.after.digest += digest(row.key, value, full);
    }
    if (kind != ImageKind::kTotals) builder.Add(row.key, value, full);
  });
  image.rows = builder.rows();
  image.blocks = builder.Take(/*finish=*/true);
  return image;
}

}  // namespace cistern
