// InnerProduct and FusedInnerProduct: a dense layer, alone or fused with its ReLU (HugeCTR 2.3,
// fully_connected_layer, fused_fully_connected_layer). Gradient of the bias: bias_gradient.h.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = x W + bias.
//
// x: [b, k]. weight: [k, n]. bias: [n], or null. y: [b, n], overwritten. All have one type: if x is
// not float, weight and bias are rounded copies of the parameters.
// scratch: FullyConnectedScratchFloats(type of x, b, k, n).
void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream);

// y = ReLU(x W + bias). NaN stays NaN, except on a GPU, where the library may turn it into 0.
// Otherwise as FullyConnected.
void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                        size_t k, size_t n, float* scratch, Stream& stream);

// y = x W + bias, or its ReLU, for prediction. On the CPU, a row of y depends on its row of x
// alone, bit for bit, so predictions do not depend on how samples are batched. On a GPU the same as
// the ops above. Otherwise as FullyConnected.
void FullyConnectedInfer(ConstValues x, ConstValues weight, ConstValues bias, bool relu, Values y,
                         size_t b, size_t k, size_t n, float* scratch, Stream& stream);

// dx = dy W^T; dW = x^T dy.
//
// dx: [b, k], written as dx_write selects; may be null (the first layer).
// dweight: [k, n], overwritten. scratch: as FullyConnected.
void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, size_t b, size_t k, size_t n, float* scratch,
                            Stream& stream);
// FullyConnected, or FullyConnectedRelu with `relu`, and FullyConnectedBackward, where rows of x
// and dx have WideColumns(type, k) columns: those from k on are zero in x and undefined in dx. A
// GPU then makes no padded copies of them. n > 1.
void FullyConnectedWide(ConstValues x, ConstValues weight, ConstValues bias, bool relu, Values y,
                        size_t b, size_t k, size_t n, float* scratch, Stream& stream);
void FullyConnectedWideBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                                Values dx, float* dweight, size_t b, size_t k, size_t n,
                                float* scratch, Stream& stream);
// FullyConnectedBackward with n = 1, if x is the output of a ReLU and dx the gradient of the ReLU's
// input: x > 0 ? dy(r) W(c) : 0. The ReLU costs no pass of its own. dx: overwritten, not null.
void DotBackwardBehindRelu(ConstValues x, ConstValues weight, ConstValues dy, Values dx,
                           float* dweight, size_t b, size_t k, float* scratch, Stream& stream);

// The number of columns that a GPU pads a matrix of k columns to: cuBLASLt's fast kernels require
// rows of 16-bit elements to begin at multiples of 16 bytes.
inline size_t WideColumns(ElementType type, size_t k) {
  return type == ElementType::kFloat ? k : (k + 7) / 8 * 8;
}
size_t FullyConnectedScratchFloats(ElementType type, size_t b, size_t k, size_t n);

}  // namespace cistern::op
