// cuBLASLt (blas.h): 2 m n k FLOPs; memory traffic, for elements of s bytes and t in c:
// s (m k + k n) + t m n, and t m n more where it accumulates.
#include "cuda/op/dense/gemm.h"

#include "common/base/check.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/primitive/launch.cuh"

namespace cistern::op::gpu {

void Gemm(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k, ConstValues a,
          ConstValues b, Write write, Values c, Stream& stream) {
  const bool accumulate = write == Write::kAccumulate;
  if (m == 0 || n == 0 || !stream.status().ok()) return;
  if (k == 0) {
    if (!accumulate) op::Fill(0.0f, c, m * n, stream);
    return;
  }
  CISTERN_CHECK(a.type == b.type && (c.type == a.type || c.type == ElementType::kFloat));
  const absl::StatusOr<Blas*> blas = stream.queue()->blas();
  if (!blas.ok()) return stream.Record(blas.status());
  const BlasProduct product = {
      transpose_a == Transpose::kYes, transpose_b == Transpose::kYes, m, n, k, a, b, accumulate, c,
      stream.product_precision()};
  const absl::Status status = (*blas)->Multiply(product, stream.queue()->stream());
  if (!status.ok()) {
    stream.Record(
        AddContext(status, absl::StrCat("Gemm of [", m, ", ", k, "] and [", k, ", ", n, "]")));
  }
}

}  // namespace cistern::op::gpu
