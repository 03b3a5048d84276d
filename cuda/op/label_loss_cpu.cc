#include "cuda/op/label_loss.h"

#include <cmath>

#include "cuda/op/cpu.h"

namespace cistern::op {
namespace {

// In double, and in the stable form, as in bce_loss_cpu.cc.
constexpr size_t kGrain = 256;

double SigmoidOf(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

double LossOf(double x, double label) {
  return (x > 0 ? x : 0) - x * label + std::log1p(std::exp(-std::abs(x)));
}

// The sum of one(i) over [0, count), in pieces whose sums are added in order.
template <typename One>
double SumOf(size_t count, float* scratch, const One& one) {
  double* partial = reinterpret_cast<double*>(scratch);
  ForPieces(count, kGrain, 32 * count, [=](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += one(i);
    partial[begin / kGrain] = sum;
  });
  double sum = 0;
  for (size_t k = 0; k < CeilDiv(count, kGrain); ++k) sum += partial[k];
  return sum;
}

double ShareOf(size_t count) {
  return count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
}

// Of class 1: softmax over two is the sigmoid of the difference.
double MarginOf(const float* logits) {
  return static_cast<double>(logits[1]) - static_cast<double>(logits[0]);
}

}  // namespace

void TwoClassLoss(const float* logits, const float* labels, double* loss, float* dlogits, size_t b,
                  float* scratch, Stream& stream) {
  if (!OnCpu(stream)) return;
  const double share = ShareOf(b);
  *loss = share * SumOf(b, scratch, [=](size_t i) {
            const double margin = MarginOf(logits + 2 * i);
            const double label = labels[i] < 0.5f ? 0 : 1;
            const double slope = (SigmoidOf(margin) - label) * share;
            dlogits[2 * i] = static_cast<float>(-slope);
            dlogits[2 * i + 1] = static_cast<float>(slope);
            return LossOf(margin, label);
          });
}

void TwoClassProbability(const float* logits, float* p, size_t b, Stream& stream) {
  if (!OnCpu(stream)) return;
  ForPieces(b, kGrain, 16 * b, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      p[i] = static_cast<float>(SigmoidOf(MarginOf(logits + 2 * i)));
    }
  });
}

void MultiLabelLoss(const float* logits, const float* labels, const float* target_weight,
                    double* loss, float* dlogits, size_t b, size_t labels_num, float* scratch,
                    Stream& stream) {
  if (!OnCpu(stream)) return;
  const size_t count = b * labels_num;
  const double share = ShareOf(count);
  *loss = share * SumOf(count, scratch, [=](size_t i) {
            dlogits[i] = 0.0f;
            if (labels[i] < kMaskedBelow) return 0.0;
            const double x = logits[i], label = labels[i], weight = target_weight[i % labels_num];
            dlogits[i] = static_cast<float>((SigmoidOf(x) - label) * weight * share);
            return weight * LossOf(x, label);
          });
}

size_t LabelLossScratchFloats(size_t count) {
  return 2 * CeilDiv(count, kGrain);
}

}  // namespace cistern::op
