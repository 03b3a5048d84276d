// Swaps two axes of a tensor: for the heads of an attention.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(o, j, i, c) = x(o, i, j, c), or y += that.
//
// x: [outer, m, n, inner]. y: [outer, n, m, inner].
void SwapAxes(ConstValues x, Write write, Values y, size_t outer, size_t m, size_t n, size_t inner,
              Stream& stream);

}  // namespace cistern::op
