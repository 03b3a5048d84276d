// Fills an empty shard with rows that arrive one at a time, read from a file.
#pragma once

#include <optional>

#include "server/table/sparse_table.h"
#include "server/table/value_block.h"

namespace cistern::server {

// Rows are written in batches: one lock per batch, and memory accesses that overlap.
//
// Threads: one thread at a time; one filler per shard.
class ShardFiller {
 public:
  // table outlives this. expected: about how many rows will be added; 0: not known.
  ShardFiller(SparseTable& table, uint32_t local, uint64_t expected = 0);

  // value: full_floats cells. kDataLoss if the key belongs to another shard or is reserved.
  absl::Status Add(Key key, const float* value, bool has_embedx);

  // A row whose key already existed: the number-th row added, counted from 1.
  struct Repeat {
    uint64_t number = 0;
    Key key = 0;
  };
  // Writes the remaining rows. Returns the first repeat; that row and all later rows are not
  // written.
  std::optional<Repeat> Finish();

  uint64_t rows() const { return rows_; }  // rows added

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

}  // namespace cistern::server
