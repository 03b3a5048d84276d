// FmOrder2: the second-order term of a factorization machine (Rendle, 2010, equation 5, without the
// sum over the embedding dimensions; HugeCTR 2.3, fm_order2_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(i, e) = ((sum over s of x(i, s, e))^2 - sum over s of x(i, s, e)^2) / 2.
//
// x: [b, slots * dim]; row i begins at x + i * x_stride. y: [b, dim], overwritten.
void FmOrder2(ConstValues x, size_t x_stride, Values y, size_t b, size_t slots, size_t dim,
              Stream& stream);

// dx(i, s, e) = dy(i, e) * (sum over t of x(i, t, e) - x(i, s, e)).
//
// dy: [b, dim]. dx: [b, slots * dim], with the stride of x.
void FmOrder2Backward(ConstValues x, size_t x_stride, ConstValues dy, Write write, Values dx,
                      size_t b, size_t slots, size_t dim, Stream& stream);

}  // namespace cistern::op
