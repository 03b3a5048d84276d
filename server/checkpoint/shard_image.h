// What one shard of a sparse table contributes to a row file: the rows that a pass changes, or all.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/checkpoint/row_file.h"
#include "server/table/sparse_table.h"
#include "server/table/value_block.h"

namespace cistern {

// Rows of a shard, and the sum of their hashes (SparseTable::Digest of this shard alone).
struct ShardTotals {
  uint64_t rows = 0;
  uint64_t digest = 0;
  bool operator==(const ShardTotals&) const = default;
};

// The totals of what the table holds now, from every row.
ShardTotals TotalsOf(const SparseTable& table, uint32_t local);

// Values that a pass has staged for one shard.
struct StagedRows {
  absl::Span<const ValueBlock> blocks;
  absl::Span<const KeyRange> ranges;  // into blocks
};

struct ShardImage {
  std::vector<RowBlockBuilder::Block> blocks;  // rows in ascending key order
  uint64_t rows = 0;                           // in blocks
  ShardTotals after;                           // of the shard once the staged rows are written
};

// What of a shard goes into a file.
enum class ImageKind {
  kTotals,  // no row: only what the totals will be
  kDelta,   // staged rows, and those of `touched` as the table holds them
  kBase,    // every row
};

// The staged rows win over those of the table, which is only read.
//
// touched: keys in any order, repeats allowed; of kDelta. before: the shard's totals now; kBase
// does not look at them.
ShardImage ImageOfShard(const SparseTable& table, uint32_t local, const StagedRows& staged,
                        absl::Span<const Key> touched, ImageKind kind, const ShardTotals& before);

}  // namespace cistern
