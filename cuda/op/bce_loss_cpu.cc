#include "cuda/op/bce_loss.h"

#include <cmath>

#include "cuda/op/cpu.h"

namespace cistern::op {
namespace {

// In double: the loss layer has one element a sample, and its accuracy is everyone's.
constexpr size_t kGrain = 256;

double SigmoidOf(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

double LossOf(double x, double label) {
  return (x > 0 ? x : 0) - x * label + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace

void BceLoss(const float* logits, const float* labels, double* loss, float* dlogits, size_t count,
             float* scratch, Stream& stream) {
  if (!OnCpu(stream)) return;
  double* partial = reinterpret_cast<double*>(scratch);
  const double share = count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
  ForPieces(count, kGrain, 32 * count, [=](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += LossOf(logits[i], labels[i]);
      if (dlogits == nullptr) continue;
      dlogits[i] = static_cast<float>((SigmoidOf(logits[i]) - labels[i]) * share);
    }
    partial[begin / kGrain] = sum;
  });
  double sum = 0;
  for (size_t k = 0; k < CeilDiv(count, kGrain); ++k) sum += partial[k];
  *loss = sum * share;
}

size_t BceLossScratchFloats(size_t count) {
  return 2 * CeilDiv(count, kGrain);
}

void Sigmoid(const float* x, float* y, size_t count, Stream& stream) {
  if (!OnCpu(stream)) return;
  ForPieces(count, kGrain, 16 * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = static_cast<float>(SigmoidOf(x[i]));
  });
}

}  // namespace cistern::op
