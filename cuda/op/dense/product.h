// The element-wise product of several arrays (HugeCTR 2.3, dot_product_layer, which is not a dot
// product).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(i) = x(0)(i) * ... * x(factors - 1)(i). x: `factors` >= 1 arrays [count]; the pointers are read
// before Product returns. y: [count], overwritten.
void Product(const ConstValues* x, size_t factors, Values y, size_t count, Stream& stream);

// dx(i) = dy(i) * the product of all factors except factor `by`. There is no division, so factors
// may be zero.
void ProductBackward(const ConstValues* x, size_t factors, size_t by, ConstValues dy, Write write,
                     Values dx, size_t count, Stream& stream);

}  // namespace cistern::op
