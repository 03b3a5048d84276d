// The contribution of one sparse-table shard to a row file: the rows that a pass changes, or all
// rows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "server/checkpoint/row_file.h"
#include "server/table/sparse_table.h"
#include "server/table/value_block.h"

namespace cistern::server {

// Rows of a shard, and the sum of their hashes (SparseTable::Digest of this shard alone).
struct ShardTotals {
  uint64_t rows = 0;
  uint64_t digest = 0;
  bool operator==(const ShardTotals&) const = default;
};

// Computes the totals of a shard from every row that the table holds now. kDataLoss, also below: a
// file of a tiered table is corrupt.
absl::StatusOr<ShardTotals> TotalsOf(const SparseTable& table, uint32_t local);

// What a pass has staged for one shard.
struct StagedRows {
  absl::Span<const ValueBlock> blocks;
  absl::Span<const KeyRange> ranges;   // into blocks
  absl::Span<const Key> removed = {};  // ascending: rows that go (eviction.h), if they exist
};

struct ShardImage {
  std::vector<RowBlockBuilder::Block> blocks;  // rows in ascending key order
  uint64_t rows = 0;                           // in blocks
  ShardTotals after;                           // of the shard, once the staged rows are written
  uint64_t created = 0;                        // staged rows that the table does not hold
};

// Which rows of a shard go into a file.
enum class ImageKind {
  kTotals,  // no rows, only the totals after the write
  kDelta,   // staged rows, the table's rows of the keys in `touched`, and those that go
  kBase,    // every row
};

// Staged rows take precedence over those of the table, which is only read.
//
// touched: for kDelta; keys in any order, repeats allowed. In a bounded table those that the table
// no longer has are written as removed rows.
// before: the shard's current totals; ignored by kBase. A kBase holds only rows in memory.
// block_bytes: as in RowBlockBuilder.
absl::StatusOr<ShardImage> ImageOfShard(const SparseTable& table, uint32_t local,
                                        const StagedRows& staged, absl::Span<const Key> touched,
                                        ImageKind kind, const ShardTotals& before,
                                        size_t block_bytes = kMaxBlockBytes);

// Every row of a shard of a tiered table, staged rows first, then those in memory, then those in
// files, in blocks for `append` and ascending by key. Returns the totals. Errors also of `append`.
// No other thread writes the table.
absl::StatusOr<ShardTotals> StreamShard(
    const SparseTable& table, uint32_t local, const StagedRows& staged, size_t block_bytes,
    const std::function<absl::Status(const std::vector<RowBlockBuilder::Block>&)>& append);

}  // namespace cistern::server
