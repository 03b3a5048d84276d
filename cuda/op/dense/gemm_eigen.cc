#include <Eigen/Core>

#include "cuda/op/dense/gemm_cpu.h"

namespace cistern::op {
namespace {

using Stride = Eigen::OuterStride<>;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstView = Eigen::Map<const RowMajor, 0, Stride>;
using View = Eigen::Map<RowMajor, 0, Stride>;

ConstView Stored(const float* x, bool transposed, size_t rows, size_t columns, size_t stride) {
  if (transposed) std::swap(rows, columns);
  return ConstView(x, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns),
                   Stride(static_cast<Eigen::Index>(stride)));
}

template <typename Result>
void Put(Result&& product, bool accumulate, View* c) {
  if (accumulate) {
    c->noalias() += product;
  } else {
    c->noalias() = product;
  }
}

}  // namespace

void MultiplyMatrices(const MatrixProduct& p) {
  const ConstView a = Stored(p.a, p.transpose_a, p.m, p.k, p.lda);
  const ConstView b = Stored(p.b, p.transpose_b, p.k, p.n, p.ldb);
  View c(p.c, static_cast<Eigen::Index>(p.m), static_cast<Eigen::Index>(p.n),
         Stride(static_cast<Eigen::Index>(p.ldc)));
  if (p.transpose_a && p.transpose_b) {
    Put(a.transpose() * b.transpose(), p.accumulate, &c);
  } else if (p.transpose_a) {
    Put(a.transpose() * b, p.accumulate, &c);
  } else if (p.transpose_b) {
    Put(a * b.transpose(), p.accumulate, &c);
  } else {
    Put(a * b, p.accumulate, &c);
  }
}

const char* GemmLibrary() {
  return "Eigen";
}

}  // namespace cistern::op
