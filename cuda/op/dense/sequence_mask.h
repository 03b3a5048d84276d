// The mask of sequences of different lengths (HugeCTR 3.x, sequence_mask_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(s, i, j) = 1 where i + 1 <= from(s) and j + 1 <= to(s), else 0. A length that is NaN is 0.
//
// from, to: [b], of the type of y, may be the same array. y: [b, m, n].
void SequenceMask(ConstValues from, ConstValues to, Values y, size_t b, size_t m, size_t n,
                  Stream& stream);

}  // namespace cistern::op
