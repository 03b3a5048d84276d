// InnerProduct: a dense layer (HugeCTR 2.3, fully_connected_layer).
#pragma once

#include "cuda/op/op.h"

namespace cistern::op {

// y = x W + bias.
//
// x: [b, k]. weight: [k, n]. bias: [n], or null for none. y: [b, n], overwritten. All of one type:
// where x is not float, weight and bias are rounded copies of the parameters.
void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, Stream& stream);

// dx = dy W^T; dW = x^T dy; dbias = column sums of dy.
//
// dx: [b, k], written as dx_write says; null: not needed (the first layer).
// dweight: [k, n] and dbias: [n], overwritten; dbias null: no bias.
// scratch: FullyConnectedScratchFloats(b, k, n).
void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, float* dbias, size_t b, size_t k, size_t n,
                            float* scratch, Stream& stream);
size_t FullyConnectedScratchFloats(size_t b, size_t k, size_t n);

}  // namespace cistern::op
