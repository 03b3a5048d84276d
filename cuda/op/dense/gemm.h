// Matrix product, with the fastest library that the build found.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

enum class Transpose { kNo, kYes };

// c = A B, or c += A B.
//
// a and b have one type; c has that type or float. Sums are float32.
//
// A is [m, k]: a is [m, k], or [k, m] if transposed. B is [k, n]: b is [k, n], or [n, k] if
// transposed. c: [m, n]. With k = 0 the product is zero. On the CPU the library computes each fixed
// block of c on one thread, in float32, so the bits of c do not depend on the number of threads. On
// a GPU cuBLASLt computes it; float inputs are rounded if stream.product_precision() allows it.
void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k, ConstValues a,
          ConstValues b, Write write, Values c, Stream& stream);

// The library behind Gemm on the CPU: "oneDNN", "OpenBLAS" or "Eigen".
const char* GemmLibrary();

}  // namespace cistern::op
