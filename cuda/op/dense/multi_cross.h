// MultiCross: the cross network of Deep & Cross (Wang et al. 2017; HugeCTR 2.3, multi_cross_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// x(0) = x; x(l + 1) = x(0) (x(l) . w(l)) + x(l) + bias(l) for l < layers; y = x(layers).
//
// The x(l) are not computed: x(l) = c(l) x + B(l), where c(l) = 1 + the sum of x(k) . w(k) over
// k < l is one number per sample, and B(l) = the sum of bias(k) over k < l is the same for all
// samples.
//
// x: [b, n]. parameters: w(0), bias(0), w(1), bias(1) ..., each [n]. y: [b, n], overwritten.
// scratch: MultiCrossScratchFloats(b, layers, n).
void MultiCross(ConstValues x, const float* parameters, Values y, size_t b, size_t layers, size_t n,
                float* scratch, Stream& stream);

// With t(l) = x . (the gradient of x(l + 1)), which needs only x . dy and the x . w(k), k > l:
//   dx = c(layers) dy + sum over l of t(l) c(l) w(l)
//   dw(l) = sum over samples of t(l) (c(l) x + B(l))
//   dbias(l) = sum over samples of dy + sum over k > l of t(k) w(k)
//
// dx: [b, n], written as dx_write selects; may be null. dparameters: as parameters, overwritten.
// scratch: as above.
void MultiCrossBackward(ConstValues x, const float* parameters, ConstValues dy, Write dx_write,
                        Values dx, float* dparameters, size_t b, size_t layers, size_t n,
                        float* scratch, Stream& stream);
size_t MultiCrossScratchFloats(size_t b, size_t layers, size_t n);

}  // namespace cistern::op
