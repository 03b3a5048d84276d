// MatrixMultiply (HugeCTR 3.x): the products of the matrices of each sample.
#include "cuda/op/dense/batched_gemm.h"
#include "worker/model/config/layer_grammar.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

using op::Transpose;

// [b, m, k] times [b, k, n] is [b, m, n].
class MatrixMultiplyLayer : public Layer {
 public:
  MatrixMultiplyLayer(Tensor* a, Tensor* b, Tensor* out)
      : Layer({a, b}, {out}), m_(a->shape.dims[0]), n_(b->shape.dims[1]), k_(a->shape.dims[1]) {}

  void Forward(const Step& step) override {
    op::BatchedGemm(Transpose::kNo, Transpose::kNo, RowsOf(output(), step), m_, n_, k_,
                    input(0).value(), input(1).value(), op::Write::kOverwrite, output().value(),
                    step.stream);
  }

  // dA = dC B^T, dB = A^T dC.
  void Backward(const Step& step) override {
    const size_t batch = RowsOf(output(), step);
    if (input(0).grad() != nullptr) {
      op::BatchedGemm(Transpose::kNo, Transpose::kYes, batch, m_, k_, n_, output().grad(),
                      input(1).value(), input(0).write, input(0).grad(), step.stream);
    }
    if (input(1).grad() != nullptr) {
      op::BatchedGemm(Transpose::kYes, Transpose::kNo, batch, k_, n_, m_, input(0).value(),
                      output().grad(), input(1).write, input(1).grad(), step.stream);
    }
  }

 private:
  const size_t m_, n_, k_;
};

LayerOr MakeMatrixMultiplyLayer(const LayerSite& site) {
  CISTERN_RETURN_IF_ERROR(site.CheckArity(2, 2, 1, 1));
  const TensorShape &a = site.shape(0), &b = site.shape(1);
  if (a.rank() != 3 || b.rank() != 3 || a.rows != b.rows || a.dims[1] != b.dims[0]) {
    return site.Error(absl::StrCat("bottoms '", site.bottoms()[0]->name, "' ", a.ToString(),
                                   " and '", site.bottoms()[1]->name, "' ", b.ToString(),
                                   " must be [b, m, k] and [b, k, n]"));
  }
  return std::make_unique<MatrixMultiplyLayer>(site.bottoms()[0], site.bottoms()[1],
                                               site.Define({a.rows, {a.dims[0], b.dims[1]}}));
}

}  // namespace

LayerGrammar DescribeMatrixMultiply() {
  return DenseLayer("MatrixMultiply", MakeMatrixMultiplyLayer);
}

}  // namespace cistern::model
