// Gathers and scatters rows of bytes: scatter into a pass table, carry-over from one pass table to
// the next, and gather for the host.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// Row to_rows[i] of `to` = row from_rows[i] of `from`, for i < count.
//
// Rows are contiguous and have `bytes` bytes each. from_rows, to_rows: [count]; null: row i. No row
// is written twice.
void CopyRows(const void* from, const uint32_t* from_rows, void* to, const uint32_t* to_rows,
              size_t bytes, size_t count, Stream& stream);

}  // namespace cistern::op
