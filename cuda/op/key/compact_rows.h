// Compaction of the rows that a batch reads: renumbers them, so that a gather from a large table
// yields contiguous rows.
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// distinct_rows = the distinct values of `rows`, ascending; *distinct = their number. Each row in
// `rows` is replaced by its index in distinct_rows.
//
// rows: [count], any order, duplicates allowed. distinct_rows: room for `count`; elements from
// *distinct on are undefined afterwards. distinct: in device memory. scratch:
// CompactRowsScratchBytes, 256-byte aligned. count < 2^32; kOutOfRange on a GPU if count >= 2^31.
void CompactRows(Row* rows, size_t count, Row* distinct_rows, uint32_t* distinct, void* scratch,
                 Stream& stream);

// Grows with `count`; also depends on the stream's device.
size_t CompactRowsScratchBytes(size_t count, Stream& stream);

}  // namespace cistern::op
