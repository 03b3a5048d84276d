#include "cuda/op/loss/label_loss.h"

#include "cuda/op/loss/log_loss_cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // label_loss.cu
decltype(op::TwoClassLoss) TwoClassLoss;
decltype(op::TwoClassProbability) TwoClassProbability;
decltype(op::MultiLabelLoss) MultiLabelLoss;
}  // namespace gpu

namespace {

double ScaleOf(const ScaledValues& gradient) {
  return gradient.scale == nullptr ? 1.0 : double{*gradient.scale};
}

template <typename T>
double MarginAt(const T* logits, size_t i) {
  const float pair[2] = {logits[2 * i], logits[2 * i + 1]};
  return MarginOf(pair);
}

template <typename T>
double TwoClassSum(const T* logits, WeightedLabels labels, T* dlogits, double scale, size_t b,
                   size_t all, float* scratch) {
  const double share = ShareOf(all);
  return share * SumOfLosses(b, scratch, [=](size_t i) {
           const double margin = MarginAt(logits, i) + labels.logit_offset;
           const double label = labels.values[i] < 0.5f ? 0 : 1;
           const double weight = labels.WeightAt(i, label);
           const double slope = (SigmoidOf(margin) - label) * weight * share * scale;
           dlogits[2 * i] = static_cast<float>(-slope);
           dlogits[2 * i + 1] = static_cast<float>(slope);
           return weight * LogLossOf(margin, label);
         });
}

template <typename T>
double MultiLabelSum(const T* logits, WeightedLabels labels, const float* target_weight, T* dlogits,
                     double scale, size_t count, size_t all, size_t labels_num, float* scratch) {
  const double share = ShareOf(all);
  return share * SumOfLosses(count, scratch, [=](size_t i) {
           dlogits[i] = 0.0f;
           if (labels.values[i] < kMaskedBelow) return 0.0;
           const double x = double{float{logits[i]}} + labels.logit_offset;
           const double label = labels.values[i], target = labels.TargetOf(label);
           const double weight = labels.WeightAt(i, label) * target_weight[i % labels_num];
           dlogits[i] = static_cast<float>((SigmoidOf(x) - target) * weight * share * scale);
           return weight * LogLossOf(x, target);
         });
}

}  // namespace

void TwoClassLoss(ConstValues logits, WeightedLabels labels, double* loss, ScaledValues dlogits,
                  size_t b, size_t all, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(TwoClassLoss, logits, labels, loss, dlogits, b, all, scratch);
  ForType(logits.type, [&]<typename T>() {
    *loss = TwoClassSum(As<T>(logits), labels, As<T>(dlogits.values), ScaleOf(dlogits), b, all,
                        scratch);
  });
}

void TwoClassProbability(ConstValues logits, float* p, size_t b, Stream& stream) {
  CISTERN_RUN_ON_GPU(TwoClassProbability, logits, p, b);
  ForType(logits.type, [&]<typename T>() {
    const T* from = As<T>(logits);
    ForPieces(b, kLossGrain, 16 * b, [=](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        p[i] = static_cast<float>(SigmoidOf(MarginAt(from, i)));
      }
    });
  });
}

void MultiLabelLoss(ConstValues logits, WeightedLabels labels, const float* target_weight,
                    double* loss, ScaledValues dlogits, size_t b, size_t all, size_t labels_num,
                    float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(MultiLabelLoss, logits, labels, target_weight, loss, dlogits, b, all,
                     labels_num, scratch);
  ForType(logits.type, [&]<typename T>() {
    *loss = MultiLabelSum(As<T>(logits), labels, target_weight, As<T>(dlogits.values),
                          ScaleOf(dlogits), b * labels_num, all * labels_num, labels_num, scratch);
  });
}

size_t LabelLossScratchFloats(size_t count) {
  return LossScratchFloats(count);
}

}  // namespace cistern::op
