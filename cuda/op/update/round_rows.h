// Rows whose table stores them in 16 bits: at the end of a pass the floats that trained become
// bfloat16 numbers, which are what servers will hold (common/value/bfloat16_cells.h).
#pragma once

#include "common/value/bfloat16_cells.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// Rounds the cells `rounding.first` to `rounding.end` of all rows. The value of row r begins at
// values + r * stride. keys: [rows].
void RoundRows(const CellRounding& rounding, const Key* keys, float* values, size_t stride,
               size_t rows, Stream& stream);

}  // namespace cistern::op
