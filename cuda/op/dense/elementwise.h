// Element-wise arithmetic.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// x = value. x: [count].
void Fill(float value, Values x, size_t count, Stream& stream);

// x *= factor. x: [count].
void Scale(float factor, float* x, size_t count, Stream& stream);

// y += x. x, y: [count].
void Accumulate(ConstValues x, Values y, size_t count, Stream& stream);

// y = a + b. a, b, y: [count]; y may be a or b.
void Add(ConstValues a, ConstValues b, Values y, size_t count, Stream& stream);

// y = x, converted from float or to float. x, y: [count].
void Convert(ConstValues x, Values y, size_t count, Stream& stream);

}  // namespace cistern::op
