// The mean binary cross-entropy of predictions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/base/cross_entropy.h"
#include "worker/model/metric/exact_sum.h"

namespace cistern {

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

// The mean of cross-entropies. Every sample has the same weight, whatever the size of its batch.
//
// Threads: one at a time.
class LogLoss {
 public:
  void Add(double cross_entropy) {
    sum_.Add(cross_entropy);
    ++count_;
  }
  // Counts a prediction that has no loss.
  void AddNone() { ++count_; }
  void Merge(const LogLoss& other) {
    sum_.Merge(other.sum_);
    count_ += other.count_;
  }
  // 0 if there are no predictions.
  double Value() const { return count_ == 0 ? 0.0 : sum_.Value() / static_cast<double>(count_); }

 private:
  ExactSum sum_;
  uint64_t count_ = 0;
};

}  // namespace cistern
