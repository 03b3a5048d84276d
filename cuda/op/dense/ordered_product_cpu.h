// A matrix product for prediction, whose sums have one order. Internal to x_cpu.cc.
#pragma once

#include <cstddef>

namespace cistern::op {

// y = x W. Each element is fma(x(r, k - 1), w(k - 1, c), ... fma(x(r, 0), w(0, c), 0)): a row of y
// depends on its row of x alone, bit for bit, and neither on b nor on the number of threads. (The
// order in which a library sums depends on the shape.)
//
// x: [b, k]. weight: [k, n]. packed: panels of the weights (packed_weights.h), or null. y: [b, n],
// overwritten.
void OrderedProduct(const float* x, const float* weight, const float* packed, size_t b, size_t k,
                    size_t n, float* y);

}  // namespace cistern::op
