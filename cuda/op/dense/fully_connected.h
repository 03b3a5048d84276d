// InnerProduct and FusedInnerProduct: a dense layer, alone or with the ReLU behind it (HugeCTR 2.3,
// fully_connected_layer, fused_fully_connected_layer). The gradient of the bias: bias_gradient.h.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = x W + bias.
//
// x: [b, k]. weight: [k, n]. bias: [n], or null for none. y: [b, n], overwritten. All of one type:
// where x is not float, weight and bias are rounded copies of the parameters.
// scratch: FullyConnectedScratchFloats(type of x, b, k, n).
void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream);

// Where a ReLU cut, a bit an element: what a backward pass on a GPU reads instead of the ReLU's
// output, which is the specification. Of the matrix library's own making.
struct ReluMask {
  uint8_t* bits = nullptr;  // [b, ReluMaskStride(n)], aligned to 16 bytes; null: none is wanted
  bool is_made = false;     // of the last forward pass
};
// Bytes of a row of n elements.
inline size_t ReluMaskStride(size_t n) {
  return (n + 127) / 128 * 16;
}

// y = ReLU(x W + bias), and mask->bits, where mask->is_made. NaN stays NaN; on a GPU it may become
// 0, as the library has it. Else as FullyConnected.
void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y,
                        ReluMask* mask, size_t b, size_t k, size_t n, float* scratch,
                        Stream& stream);

// dx = dy W^T; dW = x^T dy.
//
// dx: [b, k], written as dx_write says; null: not needed (the first layer).
// dweight: [k, n], overwritten. scratch: as FullyConnected.
void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, size_t b, size_t k, size_t n, float* scratch,
                            Stream& stream);
// The same where x is the output of a ReLU, and dx the gradient of what that was given: x > 0 ?
// (dy W^T) : 0. x_mask: of the op that made x; it may be without bits. dx: overwritten, not null.
void FullyConnectedBackwardBehindRelu(ConstValues x, const ReluMask& x_mask, ConstValues weight,
                                      ConstValues dy, Values dx, float* dweight, size_t b, size_t k,
                                      size_t n, float* scratch, Stream& stream);

// The columns that a GPU gives to a matrix of k: rows of 16-bit elements that do not begin at
// multiples of 16 bytes keep its library from the fast kernels.
inline size_t WideColumns(ElementType type, size_t k) {
  return type == ElementType::kFloat ? k : (k + 7) / 8 * 8;
}
size_t FullyConnectedScratchFloats(ElementType type, size_t b, size_t k, size_t n);

}  // namespace cistern::op
