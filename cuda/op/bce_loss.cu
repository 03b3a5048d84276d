// Bytes that must move, a logit: BceLoss 12 (8 without dlogits), Sigmoid 8. About 60 FLOPs in
// double: two exponentials and a logarithm.
#include "cuda/op/bce_loss.h"

#include "cuda/op/log_loss.h"
#include "cuda/op/reduce.cuh"

namespace cistern::op::gpu {

void BceLoss(const float* logits, const float* labels, double* loss, float* dlogits, size_t count,
             float* scratch, Stream& stream) {
  const double share = ShareOf(count);
  SumInPieces("BceLoss", count, kLossGrain, share, scratch, loss, stream, [=] __device__(size_t i) {
    const double x = logits[i], label = labels[i];
    if (dlogits != nullptr) {
      dlogits[i] = static_cast<float>((SigmoidOf(x) - label) * share);
    }
    return LogLossOf(x, label);
  });
}

void Sigmoid(const float* x, float* y, size_t count, Stream& stream) {
  Map("Sigmoid", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return static_cast<float>(SigmoidOf(x[i])); });
}

}  // namespace cistern::op::gpu
