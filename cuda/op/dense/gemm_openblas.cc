#include <cblas.h>

#include "common/base/check.h"
#include "cuda/op/dense/gemm_cpu.h"

namespace cistern::op {
namespace {

blasint Int(size_t n) {
  CISTERN_CHECK(n <= 0x7FFFFFFF);
  return static_cast<blasint>(n);
}

// The OpenMP build of OpenBLAS detects that it is called inside a parallel region; the pthreads
// build must be set to one thread, once.
bool OneThreadPerCall() {
  constexpr int kOwnThreads = 1;
  if (openblas_get_parallel() == kOwnThreads) openblas_set_num_threads(1);
  return true;
}

}  // namespace

void MultiplyMatrices(const MatrixProduct& p) {
  static const bool one_thread = OneThreadPerCall();
  CISTERN_CHECK(one_thread);
  cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
              p.transpose_b ? CblasTrans : CblasNoTrans, Int(p.m), Int(p.n), Int(p.k), 1.0f, p.a,
              Int(p.lda), p.b, Int(p.ldb), p.accumulate ? 1.0f : 0.0f, p.c, Int(p.ldc));
}

const char* GemmLibrary() {
  return "OpenBLAS";
}

}  // namespace cistern::op
