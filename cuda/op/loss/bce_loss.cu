// Memory traffic per logit of s bytes: BceLoss 4 + 2 s (4 + s without dlogits; 4 more with
// weights), Sigmoid 4 + s.
// About 60 FLOPs in double: two exponentials and a logarithm.
#include "cuda/op/loss/bce_loss.h"

#include "cuda/op/loss/log_loss.h"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void LossOf(const T* logits, WeightedLabels labels, double* loss, T* dlogits, const float* scale,
            size_t count, size_t all, float* scratch, Stream& stream) {
  const double share = ShareOf(all);
  SumInPieces("BceLoss", count, kLossGrain, share, scratch, loss, stream, [=] __device__(size_t i) {
    const double x = double{float{logits[i]}} + labels.logit_offset;
    const double label = labels.values[i], target = labels.TargetOf(label);
    const double weight = labels.WeightAt(i, label);
    if (dlogits != nullptr) {
      const double factor = scale == nullptr ? 1.0 : double{*scale};
      dlogits[i] = static_cast<float>((SigmoidOf(x) - target) * weight * share * factor);
    }
    return weight * LogLossOf(x, target);
  });
}

template <typename T>
void SigmoidOfAll(const T* x, float* y, size_t count, Stream& stream) {
  Map("Sigmoid", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return static_cast<float>(SigmoidOf(float{x[i]})); });
}

}  // namespace

void BceLoss(ConstValues logits, WeightedLabels labels, double* loss, ScaledValues dlogits,
             size_t count, size_t all, float* scratch, Stream& stream) {
  ForType(logits.type, [&]<typename T>() {
    LossOf(As<T>(logits), labels, loss, As<T>(dlogits.values), dlogits.scale, count, all, scratch,
           stream);
  });
}

void Sigmoid(ConstValues x, float* y, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { SigmoidOfAll(As<T>(x), y, count, stream); });
}

}  // namespace cistern::op::gpu
