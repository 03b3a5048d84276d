// The mean binary cross-entropy of predictions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/base/cross_entropy.h"
#include "worker/model/metric/exact_sum.h"

namespace cistern::model {

// -(y log p + (1 - y) log(1 - p)) in double, with p clipped to [1e-7, 1 - 1e-7] as in published CTR
// benchmarks.
inline constexpr double kMostCertain = 1e-7;
inline double ClippedCrossEntropy(double label, double prediction) {
  const double p = std::clamp(prediction, kMostCertain, 1.0 - kMostCertain);
  return -(label * std::log(p) + (1.0 - label) * std::log1p(-p));
}

// The cross-entropy of sigmoid(margin) without clipping; the loss layers use its mean. It
// is computed from the margin because a probability rounds to 1 while the loss is still distinct.
inline double CrossEntropyOfMargin(double label, double margin) {
  return LogLossOf(margin, label);
}

// The same, clipped like ClippedCrossEntropy.
inline double ClippedCrossEntropyOfMargin(double label, double margin) {
  const double most = std::log1p(-kMostCertain) - std::log(kMostCertain);
  return CrossEntropyOfMargin(label, std::clamp(margin, -most, most));
}

// The mean of cross-entropies, weighted by the samples' weights alone, whatever the size of their
// batches.
//
// Threads: one at a time.
class LogLoss {
 public:
  void Add(double cross_entropy, double weight = 1) {
    sum_.Add(weight * cross_entropy);
    weights_.Add(weight);
  }
  // Counts a prediction that has no loss.
  void AddNone(double weight = 1) { weights_.Add(weight); }
  void Merge(const LogLoss& other) {
    sum_.Merge(other.sum_);
    weights_.Merge(other.weights_);
  }
  // 0 if there are no predictions, or all weights are 0.
  double Value() const {
    const double weights = weights_.Value();
    return weights == 0 ? 0.0 : sum_.Value() / weights;
  }

 private:
  ExactSum sum_;
  WeightSum weights_;
};

}  // namespace cistern::model
