#include "cuda/op/dense/batched_gemm.h"

#include "cuda/op/dense/gemm_cpu.h"
#include "cuda/op/primitive/wide_array.h"

namespace cistern::op {

namespace gpu {  // batched_gemm.cu
decltype(op::BatchedGemm) BatchedGemm;
}  // namespace gpu

void BatchedGemm(Transpose transpose_a, Transpose transpose_b, size_t batch, size_t m, size_t n,
                 size_t k, ConstValues a, ConstValues b, Write write, Values c, Stream& stream) {
  CISTERN_RUN_ON_GPU(BatchedGemm, transpose_a, transpose_b, batch, m, n, k, a, b, write, c);
  if (batch == 0 || m == 0 || n == 0) return;
  const bool ta = transpose_a == Transpose::kYes, tb = transpose_b == Transpose::kYes;
  const bool accumulate = write == Write::kAccumulate;
  const WideArray left(a, batch * m * k), right(b, batch * k * n);
  WideResult out(c, batch * m * n, write);
  const float *as = left.floats(), *bs = right.floats();
  float* cs = out.floats();
  // One thread per product. A product costs more than its elements do.
  ForPieces(batch, RowGrain(m * n + m * k + k * n), batch * m * n * (1 + k / 4),
            [=](size_t begin, size_t end) {
              KeepLibrariesSingleThreaded();
              for (size_t i = begin; i < end; ++i) {
                if (k > 0) {
                  MultiplyMatrices({ta, tb, m, n, k, as + i * m * k, ta ? m : k, bs + i * k * n,
                                    tb ? k : n, accumulate, cs + i * m * n, n});
                } else if (!accumulate) {
                  std::fill_n(cs + i * m * n, m * n, 0.0f);
                }
              }
            });
  out.Round();
}

}  // namespace cistern::op
