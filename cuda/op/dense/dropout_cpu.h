// The draw of op::Dropout on the CPU, in the form that the fused ops need: the half-words for a
// range of columns of one row. Internal to x_cpu.cc.
#pragma once

#include "cuda/op/dense/dropout_element.h"

namespace cistern::op {

// Columns drawn at a time, into a stack array.
inline constexpr size_t kDropoutChunk = 512;

// Writes the half-words of columns [first, first + width) of a row of an [b, n] matrix.
//
// first: a multiple of 8. half: [width rounded up to a multiple of 32].
void DrawHalfWords(const DropoutDraw& draw, size_t n, size_t row, size_t first, size_t width,
                   uint16_t* half);

}  // namespace cistern::op
