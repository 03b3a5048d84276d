#include "cuda/op/label_loss.h"

#include "cuda/op/log_loss_cpu.h"

namespace cistern::op {

namespace gpu {  // label_loss.cu
decltype(op::TwoClassLoss) TwoClassLoss;
decltype(op::TwoClassProbability) TwoClassProbability;
decltype(op::MultiLabelLoss) MultiLabelLoss;
}  // namespace gpu

void TwoClassLoss(const float* logits, const float* labels, double* loss, float* dlogits, size_t b,
                  float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(TwoClassLoss, logits, labels, loss, dlogits, b, scratch);
  const double share = ShareOf(b);
  *loss = share * SumOfLosses(b, scratch, [=](size_t i) {
            const double margin = MarginOf(logits + 2 * i);
            const double label = labels[i] < 0.5f ? 0 : 1;
            const double slope = (SigmoidOf(margin) - label) * share;
            dlogits[2 * i] = static_cast<float>(-slope);
            dlogits[2 * i + 1] = static_cast<float>(slope);
            return LogLossOf(margin, label);
          });
}

void TwoClassProbability(const float* logits, float* p, size_t b, Stream& stream) {
  CISTERN_RUN_ON_GPU(TwoClassProbability, logits, p, b);
  ForPieces(b, kLossGrain, 16 * b, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      p[i] = static_cast<float>(SigmoidOf(MarginOf(logits + 2 * i)));
    }
  });
}

void MultiLabelLoss(const float* logits, const float* labels, const float* target_weight,
                    double* loss, float* dlogits, size_t b, size_t labels_num, float* scratch,
                    Stream& stream) {
  CISTERN_RUN_ON_GPU(MultiLabelLoss, logits, labels, target_weight, loss, dlogits, b, labels_num,
                     scratch);
  const size_t count = b * labels_num;
  const double share = ShareOf(count);
  *loss = share * SumOfLosses(count, scratch, [=](size_t i) {
            dlogits[i] = 0.0f;
            if (labels[i] < kMaskedBelow) return 0.0;
            const double x = logits[i], label = labels[i], weight = target_weight[i % labels_num];
            dlogits[i] = static_cast<float>((SigmoidOf(x) - label) * weight * share);
            return weight * LogLossOf(x, label);
          });
}

size_t LabelLossScratchFloats(size_t count) {
  return LossScratchFloats(count);
}

}  // namespace cistern::op
