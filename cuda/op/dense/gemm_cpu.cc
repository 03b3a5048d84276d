#include "cuda/op/dense/gemm_cpu.h"
#include "cuda/op/primitive/wide_array.h"

namespace cistern::op {

namespace gpu {  // gemm.cu
decltype(op::Gemm) Gemm;
}  // namespace gpu

void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k, ConstValues a,
          ConstValues b, Write write, Values c, Stream& stream) {
  CISTERN_RUN_ON_GPU(Gemm, transpose_a, transpose_b, m, n, k, a, b, write, c);
  const bool ta = transpose_a == Transpose::kYes, tb = transpose_b == Transpose::kYes;
  const WideArray left(a, m * k), right(b, k * n);
  WideResult out(c, m * n, write);
  const MatrixProduct product = {ta,
                                 tb,
                                 m,
                                 n,
                                 k,
                                 left.floats(),
                                 ta ? m : k,
                                 right.floats(),
                                 tb ? k : n,
                                 write == Write::kAccumulate,
                                 out.floats(),
                                 n};
  MultiplyInBlocks(product, [](const MatrixProduct&, size_t) {});
  out.Round();
}

}  // namespace cistern::op
