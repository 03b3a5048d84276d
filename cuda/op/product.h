// The product of several arrays, element by element (HugeCTR 2.3, dot_product_layer, which is no
// dot product).
#pragma once

#include "cuda/op/op.h"

namespace cistern::op {

// y(i) = x(0)(i) * ... * x(factors - 1)(i). x: `factors` >= 1 pointers to [count]; the pointers are
// read before Product returns. y: [count], overwritten.
void Product(const float* const* x, size_t factors, float* y, size_t count, Stream& stream);

// dx(i) = dy(i) * the product of all factors but number `by`. Nothing is divided, so a factor may
// be zero.
void ProductBackward(const float* const* x, size_t factors, size_t by, const float* dy, Write write,
                     float* dx, size_t count, Stream& stream);

}  // namespace cistern::op
