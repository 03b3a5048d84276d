#include <oneapi/dnnl/dnnl.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "common/base/blocked_signals.h"
#include "common/base/check.h"
#include "cuda/op/dense/gemm_cpu.h"

namespace cistern::op {
namespace {

// The kernels that oneDNN generates for products use the stack pointer as a pointer to their
// workspace on the heap (https://github.com/uxlfoundation/oneDNN/issues/4845; Debian 12 and Ubuntu
// 24.04 have older versions than the fix). The frame of a signal handler, up to 11 KiB, is written
// below the stack pointer. So during a product no handler may run on its thread: neither on the
// caller's nor on one of OpenMP's.
void KeepHandlersOffPoolThread() {
#ifdef _OPENMP
  if (omp_get_thread_num() != 0) BlockSignalsOfPoolThread();
#endif
}

}  // namespace

void MultiplyMatrices(const MatrixProduct& p) {
  const auto dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  KeepHandlersOffPoolThread();
  const BlockedSignals blocked;
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N',
                                          dim(p.m), dim(p.n), dim(p.k), 1.0f, p.a, dim(p.lda), p.b,
                                          dim(p.ldb), p.accumulate ? 1.0f : 0.0f, p.c, dim(p.ldc));
  CISTERN_CHECK(status == dnnl_success);
}

const char* GemmLibrary() {
  return "oneDNN";
}

}  // namespace cistern::op
