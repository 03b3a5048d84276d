#include "cuda/op/loss/bce_loss.h"

#include "cuda/op/loss/log_loss_cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // bce_loss.cu
decltype(op::BceLoss) BceLoss;
decltype(op::Sigmoid) Sigmoid;
}  // namespace gpu

namespace {

template <typename T>
double SumOf(const T* logits, WeightedLabels labels, T* dlogits, double scale, size_t count,
             size_t all, float* scratch) {
  const double share = ShareOf(all);
  return share * SumOfLosses(count, scratch, [=](size_t i) {
           const double x = double{float{logits[i]}} + labels.logit_offset;
           const double label = labels.values[i], target = labels.TargetOf(label);
           const double weight = labels.WeightAt(i, label);
           if (dlogits != nullptr) {
             dlogits[i] = static_cast<float>((SigmoidOf(x) - target) * weight * share * scale);
           }
           return weight * LogLossOf(x, target);
         });
}

}  // namespace

void BceLoss(ConstValues logits, WeightedLabels labels, double* loss, ScaledValues dlogits,
             size_t count, size_t all, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(BceLoss, logits, labels, loss, dlogits, count, all, scratch);
  const double scale = dlogits.scale == nullptr ? 1.0 : double{*dlogits.scale};
  ForType(logits.type, [&]<typename T>() {
    *loss = SumOf(As<T>(logits), labels, As<T>(dlogits.values), scale, count, all, scratch);
  });
}

size_t BceLossScratchFloats(size_t count) {
  return LossScratchFloats(count);
}

void Sigmoid(ConstValues x, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Sigmoid, x, y, count);
  ForType(x.type, [&]<typename T>() {
    const T* from = As<T>(x);
    ForPieces(count, kLossGrain, 16 * count, [=](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        y[i] = static_cast<float>(SigmoidOf(float{from[i]}));
      }
    });
  });
}

}  // namespace cistern::op
