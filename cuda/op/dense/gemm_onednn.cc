#include <oneapi/dnnl/dnnl.h>

#include "common/base/check.h"
#include "cuda/op/dense/gemm_cpu.h"

namespace cistern::op {

void MultiplyMatrices(const MatrixProduct& p) {
  const auto dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N',
                                          dim(p.m), dim(p.n), dim(p.k), 1.0f, p.a, dim(p.lda), p.b,
                                          dim(p.ldb), p.accumulate ? 1.0f : 0.0f, p.c, dim(p.ldc));
  CISTERN_CHECK(status == dnnl_success);
}

const char* GemmLibrary() {
  return "oneDNN";
}

}  // namespace cistern::op
