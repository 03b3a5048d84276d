// Multiply (HugeCTR 2.3, multiply_layer): each feature times its own weight vector.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(i, s, e) = x(i, s) * w(s, e).
//
// x: [b, slots]. weight: [slots, dim]. y: [b, slots * dim], overwritten.
void Multiply(ConstValues x, const float* weight, Values y, size_t b, size_t slots, size_t dim,
              Stream& stream);

// dx(i, s) = sum over e of dy(i, s, e) w(s, e); dw(s, e) = sum over i of dy(i, s, e) x(i, s).
//
// dx: [b, slots], may be null. dweight: [slots, dim], overwritten.
// scratch: MultiplyScratchFloats(b, slots, dim).
void MultiplyBackward(ConstValues x, const float* weight, ConstValues dy, Write dx_write, Values dx,
                      float* dweight, size_t b, size_t slots, size_t dim, float* scratch,
                      Stream& stream);
size_t MultiplyScratchFloats(size_t b, size_t slots, size_t dim);

}  // namespace cistern::op
