#include "cuda/op/bce_loss.h"

#include "cuda/op/log_loss_cpu.h"

namespace cistern::op {

namespace gpu {  // bce_loss.cu
decltype(op::BceLoss) BceLoss;
decltype(op::Sigmoid) Sigmoid;
}  // namespace gpu

void BceLoss(const float* logits, const float* labels, double* loss, float* dlogits, size_t count,
             float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(BceLoss, logits, labels, loss, dlogits, count, scratch);
  const double share = ShareOf(count);
  *loss = share * SumOfLosses(count, scratch, [=](size_t i) {
            if (dlogits != nullptr) {
              dlogits[i] = static_cast<float>((SigmoidOf(logits[i]) - labels[i]) * share);
            }
            return LogLossOf(logits[i], labels[i]);
          });
}

size_t BceLossScratchFloats(size_t count) {
  return LossScratchFloats(count);
}

void Sigmoid(const float* x, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Sigmoid, x, y, count);
  ForPieces(count, kLossGrain, 16 * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = static_cast<float>(SigmoidOf(x[i]));
  });
}

}  // namespace cistern::op
