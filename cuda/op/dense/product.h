// The product of several arrays, element by element (HugeCTR 2.3, dot_product_layer, which is no
// dot product).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(i) = x(0)(i) * ... * x(factors - 1)(i). x: `factors` >= 1 arrays [count]; the pointers are read
// before Product returns. y: [count], overwritten.
void Product(const ConstValues* x, size_t factors, Values y, size_t count, Stream& stream);

// dx(i) = dy(i) * the product of all factors but number `by`. Nothing is divided, so a factor may
// be zero.
void ProductBackward(const ConstValues* x, size_t factors, size_t by, ConstValues dy, Write write,
                     Values dx, size_t count, Stream& stream);

}  // namespace cistern::op
