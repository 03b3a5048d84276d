// The checks of pushed values before they reach a table: each push by itself, then the keys of all
// pushes of a pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/value_layout.h"
#include "server/commit/staged_push.h"
#include "server/table/table_store.h"
#include "server/table/value_block.h"

namespace cistern::server {

// Checks one push against its table. Errors: those of CommitState::Push that depend on neither the
// pass nor the worker.
absl::Status CheckPush(const TableStore& store, const StagedPush& push);

// Finds NaN and Inf in the cells of rows.
//
// Not every cell is a float: show and click are doubles in two cells each, and uid is an integer of
// any bits. Each cell of a row therefore has its own pattern: a mask, and the masked bits of a
// number that is not finite. A cell of two bfloat16 has a second pattern, for the lower one.
//
// Threads: immutable; any thread.
class FiniteScan {
 public:
  // For rows of `layout`, full_floats() cells each.
  explicit FiniteScan(const ValueLayout& layout);
  // For dense rows: every cell is a float.
  explicit FiniteScan(uint32_t columns);

  // The position of the first cell of `cells` (whole rows) whose number is NaN or Inf; cells.size()
  // if all are finite. For a double, the position of its upper half.
  size_t FirstBad(absl::Span<const float> cells) const;

 private:
  void Repeat();
  size_t FirstBadOfChunk(const float* cells, size_t count) const;

  // The patterns of several rows, so that the loop over them is long: cell i is bad if bits & mask
  // == bad.
  std::vector<uint32_t> mask_, bad_;
  // The mask of the lower number of a cell, 0 if it has none; empty without 16-bit rows.
  std::vector<uint32_t> lower_;
};

// Returns a key that occurs more than once in `blocks`; none if all keys are distinct. Two workers
// then both own the key, or one worker pushed it twice; one of the values would be lost. If several
// keys do, always returns the same one. Shards run in parallel on `pool`; during the call each
// needs 16 to 32 bytes of memory per key.
std::optional<Key> FindDuplicateKey(const ShardMap& map, uint32_t local_shard_num,
                                    absl::Span<const ValueBlock> blocks, ThreadPool& pool);

}  // namespace cistern::server
