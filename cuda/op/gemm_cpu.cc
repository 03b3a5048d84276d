#include "cuda/op/gemm_cpu.h"

namespace cistern::op {

namespace gpu {  // gemm.cu
decltype(op::Gemm) Gemm;
}  // namespace gpu

void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k,
          const float* a, const float* b, Write write, float* c, Stream& stream) {
  CISTERN_RUN_ON_GPU(Gemm, transpose_a, transpose_b, m, n, k, a, b, write, c);
  const bool ta = transpose_a == Transpose::kYes, tb = transpose_b == Transpose::kYes;
  const Product product = {
      ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, write == Write::kAccumulate, c, n};
  MultiplyInBlocks(product, [](const Product&, size_t) {});
}

}  // namespace cistern::op
