// The rows that a batch reads, numbered among themselves: what of a large table it takes lies side
// by side then.
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// distinct_rows = the rows in `rows`, ascending, each once; *distinct = how many there are; and
// each row of `rows` becomes its place among them.
//
// rows: [count], in any order, may repeat. distinct_rows: room for `count`; what is behind
// *distinct is undefined afterwards. distinct: in the memory of the device. scratch:
// CompactRowsScratchBytes, 256-byte aligned. count < 2^32; kOutOfRange on a GPU if count >= 2^31.
void CompactRows(Row* rows, size_t count, Row* distinct_rows, uint32_t* distinct, void* scratch,
                 Stream& stream);

// Grows with `count`; it depends on the stream's device, too.
size_t CompactRowsScratchBytes(size_t count, Stream& stream);

}  // namespace cistern::op
