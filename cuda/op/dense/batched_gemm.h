// Many matrix products of one small shape (HugeCTR 3.x, matrix_multiply_layer): for the attention
// of a sample's vectors.
#pragma once

#include "cuda/op/dense/gemm.h"

namespace cistern::op {

// c(i) = A(i) B(i), or c(i) += A(i) B(i), for i < batch.
//
// A(i) is [m, k]: a(i) is [m, k], or [k, m] if transposed. B(i) is [k, n]: b(i) is [k, n], or [n,
// k] if transposed. a, b and c: the matrices one after another, of one type. Sums are float32. With
// k = 0 the product is zero.
void BatchedGemm(Transpose transpose_a, Transpose transpose_b, size_t batch, size_t m, size_t n,
                 size_t k, ConstValues a, ConstValues b, Write write, Values c, Stream& stream);

}  // namespace cistern::op
