// Arithmetic element by element.
#pragma once

#include "cuda/op/op.h"

namespace cistern::op {

// x = value. x: [count].
void Fill(float value, float* x, size_t count, Stream& stream);

// x *= factor. x: [count].
void Scale(float factor, float* x, size_t count, Stream& stream);

// y += x. x, y: [count].
void Accumulate(const float* x, float* y, size_t count, Stream& stream);

// y = a + b. a, b, y: [count]; y may be a or b.
void Add(const float* a, const float* b, float* y, size_t count, Stream& stream);

}  // namespace cistern::op
