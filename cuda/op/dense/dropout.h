// Dropout (HugeCTR 2.3, dropout_layer): keeps an element iff 1 - u >= rate and scales it by
// 1 / (1 - rate). Do not call it in evaluation, where dropout is the identity.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The random draw: a pure function of these fields and the element's position, on every device.
//
// u of element (row, column) of a [b, n] matrix is (h + 1) / 65536, in (0, 1], where h is 16 bits
// of one Philox block: half-word column % 8 (the low half of word 0 is half-word 0) of Philox(seed,
// (first_row + row) * ceil(n / 8) + column / 8, sequence).
struct DropoutDraw {
  float rate = 0.0f;  // 0 <= rate < 1; 0: nothing is dropped
  uint64_t seed = 0;
  uint64_t sequence = 0;   // differs for every layer and step
  uint64_t first_row = 0;  // rows of the same draw on preceding ranks
};

// y = x * mask / (1 - rate).
//
// x, y: [b, n], may be the same array. mask: [b, n] bytes, 1 = kept, for the backward pass.
void Dropout(ConstValues x, const DropoutDraw& draw, Values y, uint8_t* mask, size_t b, size_t n,
             Stream& stream);

// dx = dy * mask / (1 - rate). dy and dx may be the same array (with kOverwrite).
void DropoutBackward(ConstValues dy, const uint8_t* mask, float rate, Write write, Values dx,
                     size_t b, size_t n, Stream& stream);

}  // namespace cistern::op
