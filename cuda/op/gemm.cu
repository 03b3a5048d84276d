// By cuBLASLt (blas.h): 2 m n k FLOPs; bytes that must move 4 (m k + k n + m n),
// and 4 m n more where it accumulates.
#include "cuda/op/gemm.h"

#include "cuda/op/elementwise.h"
#include "cuda/op/launch.cuh"

namespace cistern::op::gpu {

void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k,
          const float* a, const float* b, Write write, float* c, Stream& stream) {
  const bool accumulate = write == Write::kAccumulate;
  if (m == 0 || n == 0 || !stream.status().ok()) return;
  if (k == 0) {
    if (!accumulate) op::Fill(0.0f, c, m * n, stream);
    return;
  }
  const absl::StatusOr<Blas*> blas = stream.queue()->blas();
  if (!blas.ok()) return stream.Record(blas.status());
  const BlasProduct product = {transpose_a == Transpose::kYes,
                               transpose_b == Transpose::kYes,
                               m,
                               n,
                               k,
                               a,
                               b,
                               accumulate,
                               nullptr,
                               c,
                               stream.product_precision()};
  const absl::Status status = (*blas)->Multiply(product, stream.queue()->stream());
  if (!status.ok()) {
    stream.Record(
        AddContext(status, absl::StrCat("Gemm of [", m, ", ", k, "] and [", k, ", ", n, "]")));
  }
}

}  // namespace cistern::op::gpu
