// Copies a block of columns between matrices: for concat, slice and the gather of slots.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(r, c) = x(r, c), or y(r, c) += x(r, c), for r < b and c < n.
//
// x: row r begins at x + r * x_stride; y likewise; both strides >= n. To copy columns [lo, hi) of a
// matrix, pass its pointer + lo and n = hi - lo.
void CopyColumns(ConstValues x, size_t x_stride, Write write, Values y, size_t y_stride, size_t b,
                 size_t n, Stream& stream);

}  // namespace cistern::op
