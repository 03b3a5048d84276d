#include "server/table/table_diff.h"

#include <algorithm>
#include <cstring>

namespace cistern::server {
namespace {

constexpr size_t kScanRows = 1024;        // under one lock
constexpr uint64_t kDenseRows = 1 << 14;  // compared at a time

void Note(Key key, size_t examples, uint64_t* count, std::vector<Key>* keys) {
  ++*count;
  if (keys->size() < examples) keys->push_back(key);
}

// Visits copies of all rows of a table, a few at a time, because no thread may hold two locks.
template <typename Visit>
absl::Status ForEachRow(const SparseTable& table, Visit visit) {
  const size_t stride = table.layout().full_floats();
  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;
  for (uint32_t local = 0; local < table.local_shard_num(); ++local) {
    uint64_t cursor = 0;
    do {
      keys.clear();
      values.clear();
      has_embedx.clear();
      CISTERN_ASSIGN_OR_RETURN(
          cursor,
          table.Scan(local, cursor, kScanRows, [&](Key key, const float* value, bool with_embedx) {
            keys.push_back(key);
            values.insert(values.end(), value, value + stride);
            has_embedx.push_back(with_embedx ? 1 : 0);
          }));
      for (size_t i = 0; i < keys.size(); ++i) {
        CISTERN_RETURN_IF_ERROR(visit(keys[i], &values[i * stride], has_embedx[i] != 0));
      }
    } while (cursor != 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DiffTables(const SparseTable& a, const SparseTable& b, size_t examples,
                        TableDifference* difference) {
  difference->rows_a += a.counts().rows;
  difference->rows_b += b.counts().rows;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t digest_a, a.Digest());
  CISTERN_ASSIGN_OR_RETURN(const uint64_t digest_b, b.Digest());
  difference->digest_a += digest_a;
  difference->digest_b += digest_b;
  if (&a.layout().accessor() != &b.layout().accessor() ||
      a.layout().full_floats() != b.layout().full_floats() ||
      a.layout().short_floats() != b.layout().short_floats()) {
    return absl::InvalidArgumentError("their rows have different cells");
  }
  std::vector<float> other(a.layout().full_floats());
  CISTERN_RETURN_IF_ERROR(
      ForEachRow(a, [&](Key key, const float* value, bool has_embedx) -> absl::Status {
        bool other_has_embedx = false;
        CISTERN_ASSIGN_OR_RETURN(const bool found, b.Find(key, other.data(), &other_has_embedx));
        if (!found) {
          Note(key, examples, &difference->removed, &difference->removed_keys);
        } else if (other_has_embedx != has_embedx ||
                   std::memcmp(value, other.data(),
                               a.layout().floats(has_embedx) * sizeof(float)) != 0) {
          Note(key, examples, &difference->changed, &difference->changed_keys);
        }
        return absl::OkStatus();
      }));
  return ForEachRow(b, [&](Key key, const float*, bool) -> absl::Status {
    bool has_embedx = false;
    CISTERN_ASSIGN_OR_RETURN(const bool found, a.Find(key, other.data(), &has_embedx));
    if (!found) Note(key, examples, &difference->added, &difference->added_keys);
    return absl::OkStatus();
  });
}

absl::Status DiffDenseTables(const DenseTable& a, const DenseTable& b, size_t examples,
                             TableDifference* difference) {
  const DenseRange range = a.range();
  const uint64_t rows = range.end - range.begin;
  difference->rows_a += a.written() ? rows : 0;
  difference->rows_b += b.written() ? b.range().end - b.range().begin : 0;
  difference->digest_a += a.Digest();
  difference->digest_b += b.Digest();
  if (range.begin != b.range().begin || range.end != b.range().end || a.columns() != b.columns()) {
    return absl::InvalidArgumentError("they have different rows or columns");
  }
  if (!a.written() || !b.written()) {
    difference->removed += a.written() ? rows : 0;
    difference->added += b.written() ? rows : 0;
    return absl::OkStatus();
  }
  const size_t columns = a.columns();
  std::vector<float> left(kDenseRows * columns), right(left.size());
  for (uint64_t row = range.begin; row < range.end; row += kDenseRows) {
    const uint64_t count = std::min(kDenseRows, range.end - row);
    CISTERN_RETURN_IF_ERROR(a.Read(row, count, left.data()));
    CISTERN_RETURN_IF_ERROR(b.Read(row, count, right.data()));
    for (uint64_t i = 0; i < count; ++i) {
      if (std::memcmp(&left[i * columns], &right[i * columns], columns * sizeof(float)) == 0) {
        continue;
      }
      Note(row + i, examples, &difference->changed, &difference->changed_keys);
    }
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
