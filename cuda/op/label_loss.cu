// Bytes that must move: TwoClassLoss 20 a sample, TwoClassProbability 12, MultiLabelLoss 12 a
// logit. About 60 FLOPs in double each.
#include "cuda/op/label_loss.h"

#include "cuda/op/log_loss.h"
#include "cuda/op/reduce.cuh"

namespace cistern::op::gpu {

void TwoClassLoss(const float* logits, const float* labels, double* loss, float* dlogits, size_t b,
                  float* scratch, Stream& stream) {
  const double share = ShareOf(b);
  SumInPieces("TwoClassLoss", b, kLossGrain, share, scratch, loss, stream,
              [=] __device__(size_t i) {
                const double margin = MarginOf(logits + 2 * i);
                const double label = labels[i] < 0.5f ? 0 : 1;
                const double slope = (SigmoidOf(margin) - label) * share;
                dlogits[2 * i] = static_cast<float>(-slope);
                dlogits[2 * i + 1] = static_cast<float>(slope);
                return LogLossOf(margin, label);
              });
}

void TwoClassProbability(const float* logits, float* p, size_t b, Stream& stream) {
  Map("TwoClassProbability", b, Write::kOverwrite, p, stream,
      [=] __device__(size_t i) { return static_cast<float>(SigmoidOf(MarginOf(logits + 2 * i))); });
}

void MultiLabelLoss(const float* logits, const float* labels, const float* target_weight,
                    double* loss, float* dlogits, size_t b, size_t labels_num, float* scratch,
                    Stream& stream) {
  const size_t count = b * labels_num;
  const double share = ShareOf(count);
  SumInPieces("MultiLabelLoss", count, kLossGrain, share, scratch, loss, stream,
              [=] __device__(size_t i) {
                dlogits[i] = 0.0f;
                if (labels[i] < kMaskedBelow) return 0.0;
                const double x = logits[i], label = labels[i];
                const double weight = target_weight[i % labels_num];
                dlogits[i] = static_cast<float>((SigmoidOf(x) - label) * weight * share);
                return weight * LogLossOf(x, label);
              });
}

}  // namespace cistern::op::gpu
