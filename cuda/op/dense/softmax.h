// Softmax over the columns of each row (HugeCTR 3.x, softmax_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(r, c) = exp(factor x(r, c)) / sum over k of exp(factor x(r, k)). The largest exponent of a row
// is subtracted first, so that none overflows. All of y(r) is NaN if a factor x(r, c) is NaN or
// +infinity, or if all are -infinity.
//
// x, y: [b, n], may be the same array.
void Softmax(float factor, ConstValues x, Values y, size_t b, size_t n, Stream& stream);

// dx(r, c) = factor * y(r, c) * (dy(r, c) - sum over k of dy(r, k) y(r, k)).
//
// y: the result of Softmax. dy, dx: [b, n], may be the same array (kOverwrite).
void SoftmaxBackward(float factor, ConstValues y, ConstValues dy, Write write, Values dx, size_t b,
                     size_t n, Stream& stream);

}  // namespace cistern::op
