// Memory traffic for logits of s bytes: TwoClassLoss 4 + 4 s per sample, TwoClassProbability
// 4 + 2 s per sample, MultiLabelLoss 4 + 2 s per logit. About 60 FLOPs in double each.
#include "cuda/op/loss/label_loss.h"

#include "cuda/op/loss/log_loss.h"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
__device__ inline double MarginAt(const T* logits, size_t i) {
  return double{float{logits[2 * i + 1]}} - double{float{logits[2 * i]}};
}

__device__ inline double ScaleOf(const float* scale) {
  return scale == nullptr ? 1.0 : double{*scale};
}

template <typename T>
void TwoClassLossOf(const T* logits, WeightedLabels labels, double* loss, T* dlogits,
                    const float* scale, size_t b, size_t all, float* scratch, Stream& stream) {
  const double share = ShareOf(all);
  SumInPieces("TwoClassLoss", b, kLossGrain, share, scratch, loss, stream,
              [=] __device__(size_t i) {
                const double margin = MarginAt(logits, i) + labels.logit_offset;
                const double label = labels.values[i] < 0.5f ? 0 : 1;
                const double weight = labels.WeightAt(i, label);
                const double slope = (SigmoidOf(margin) - label) * weight * share * ScaleOf(scale);
                dlogits[2 * i] = static_cast<float>(-slope);
                dlogits[2 * i + 1] = static_cast<float>(slope);
                return weight * LogLossOf(margin, label);
              });
}

template <typename T>
void ProbabilityOf(const T* logits, float* p, size_t b, Stream& stream) {
  Map("TwoClassProbability", b, Write::kOverwrite, p, stream,
      [=] __device__(size_t i) { return static_cast<float>(SigmoidOf(MarginAt(logits, i))); });
}

template <typename T>
void MultiLabelLossOf(const T* logits, WeightedLabels labels, const float* target_weight,
                      double* loss, T* dlogits, const float* scale, size_t count, size_t all,
                      size_t labels_num, float* scratch, Stream& stream) {
  const double share = ShareOf(all);
  SumInPieces(
      "MultiLabelLoss", count, kLossGrain, share, scratch, loss, stream, [=] __device__(size_t i) {
        dlogits[i] = 0.0f;
        if (labels.values[i] < kMaskedBelow) return 0.0;
        const double x = double{float{logits[i]}} + labels.logit_offset;
        const double label = labels.values[i], target = labels.TargetOf(label);
        const double weight = labels.WeightAt(i, label) * target_weight[i % labels_num];
        dlogits[i] = static_cast<float>((SigmoidOf(x) - target) * weight * share * ScaleOf(scale));
        return weight * LogLossOf(x, target);
      });
}

}  // namespace

void TwoClassLoss(ConstValues logits, WeightedLabels labels, double* loss, ScaledValues dlogits,
                  size_t b, size_t all, float* scratch, Stream& stream) {
  ForType(logits.type, [&]<typename T>() {
    TwoClassLossOf(As<T>(logits), labels, loss, As<T>(dlogits.values), dlogits.scale, b, all,
                   scratch, stream);
  });
}

void TwoClassProbability(ConstValues logits, float* p, size_t b, Stream& stream) {
  ForType(logits.type, [&]<typename T>() { ProbabilityOf(As<T>(logits), p, b, stream); });
}

void MultiLabelLoss(ConstValues logits, WeightedLabels labels, const float* target_weight,
                    double* loss, ScaledValues dlogits, size_t b, size_t all, size_t labels_num,
                    float* scratch, Stream& stream) {
  ForType(logits.type, [&]<typename T>() {
    MultiLabelLossOf(As<T>(logits), labels, target_weight, loss, As<T>(dlogits.values),
                     dlogits.scale, b * labels_num, all * labels_num, labels_num, scratch, stream);
  });
}

}  // namespace cistern::op::gpu
