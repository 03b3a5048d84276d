// Fills an empty shard with rows that come one after another, out of a file.
#pragma once

#include <optional>

#include "server/table/sparse_table.h"
#include "server/table/value_block.h"

namespace cistern {

// Rows are written in batches: one lock and overlapping memory accesses for many of them.
//
// Threads: one at a time; one filler a shard.
class ShardFiller {
 public:
  // table outlives this. expected: rows that will come, as far as that is known.
  ShardFiller(SparseTable& table, uint32_t local, uint64_t expected = 0);

  // value: full_floats cells. kDataLoss if the key is of another shard, or reserved.
  absl::Status Add(Key key, const float* value, bool full);

  // A row whose key was there: the number-th that was added, from 1 on.
  struct Repeat {
    uint64_t number = 0;
    Key key = 0;
  };
  // Writes what is left. Returns the first repeat; it and what came after it was not written.
  std::optional<Repeat> Finish();

  uint64_t rows() const { return rows_; }  // added

 private:
  void Flush();

  SparseTable& table_;
  const uint32_t local_;
  const ShardIndex shard_;
  const uint64_t expected_;
  RowBatch batch_;
  uint64_t rows_ = 0;
  std::optional<Repeat> repeat_;
};

}  // namespace cistern
