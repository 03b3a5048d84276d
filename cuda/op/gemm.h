// Matrix product, by the fastest library that the build found.
#pragma once

#include "cuda/op/op.h"

namespace cistern::op {

enum class Transpose { kNo, kYes };

// c = A B, or c += A B.
//
// A is [m, k]: a is [m, k], or [k, m] when transposed. B is [k, n]: b is [k, n], or [n, k] when
// transposed. c: [m, n]. With k = 0 the product is zero. The library runs on one thread for each
// fixed block of c, so the bits of c do not depend on the number of threads. It is in
// float32; on a GPU by cuBLASLt, with inputs rounded where stream.product_precision() allows it.
void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k,
          const float* a, const float* b, Write write, float* c, Stream& stream);

// The library behind Gemm on the CPU: "oneDNN", "OpenBLAS" or "Eigen".
const char* GemmLibrary();

}  // namespace cistern::op
