// Matrix product, by the fastest library that the build found.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

enum class Transpose { kNo, kYes };

// c = A B, or c += A B.
//
// a and b are of one type; c is of that type, too, or float. Sums are float32.
//
// A is [m, k]: a is [m, k], or [k, m] when transposed. B is [k, n]: b is [k, n], or [n, k] when
// transposed. c: [m, n]. With k = 0 the product is zero. The library runs on one thread for each
// fixed block of c, so the bits of c do not depend on the number of threads. It is in
// float32; on a GPU by cuBLASLt, with float inputs rounded where stream.product_precision() allows
// it.
void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k, ConstValues a,
          ConstValues b, Write write, Values c, Stream& stream);

// The library behind Gemm on the CPU: "oneDNN", "OpenBLAS" or "Eigen".
const char* GemmLibrary();

}  // namespace cistern::op
