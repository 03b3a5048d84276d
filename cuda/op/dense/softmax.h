// Softmax over the columns of each row (HugeCTR 3.x, softmax_layer and masked_softmax_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(r, c) = exp(factor x(r, c)) / sum over k of exp(factor x(r, k)). The largest exponent of a row
// is subtracted first, so that none overflows. All of y(r) is NaN if a factor x(r, c) is NaN or
// +infinity, or if all are -infinity.
//
// x, y: [b, n], may be the same array.
void Softmax(float factor, ConstValues x, Values y, size_t b, size_t n, Stream& stream);

// The same with the exponents factor x - 10000 (1 - mask), so that a column with a mask of 0 beside
// one of 1 gets 0. Where all of a row's mask is 0, the row is what it is without a mask.
//
// x, y: [b, heads, rows, n], may be the same array. mask: [b, rows, n], of the type of x; all heads
// read it.
void MaskedSoftmax(float factor, ConstValues x, ConstValues mask, Values y, size_t b, size_t heads,
                   size_t rows, size_t n, Stream& stream);

// dx(r, c) = factor * y(r, c) * (dy(r, c) - sum over k of dy(r, k) y(r, k)): the gradient of both.
//
// y: the result of Softmax. dy, dx: [b, n], may be the same array (kOverwrite).
void SoftmaxBackward(float factor, ConstValues y, ConstValues dy, Write write, Values dx, size_t b,
                     size_t n, Stream& stream);

// What a mask of 0 takes from an exponent.
inline constexpr float kMaskPenalty = 10000.0f;

}  // namespace cistern::op
