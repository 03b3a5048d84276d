// Copies rows of bytes between tables: what is spread over a pass table, carried from one to the
// next, and gathered for the host.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// Row to_rows[i] of `to` = row from_rows[i] of `from`, for i < count.
//
// Rows of `bytes` bytes that lie one behind the other. from_rows, to_rows: [count]; null: row i.
// No row is written twice.
void CopyRows(const void* from, const uint32_t* from_rows, void* to, const uint32_t* to_rows,
              size_t bytes, size_t count, Stream& stream);

}  // namespace cistern::op
