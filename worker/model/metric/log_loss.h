// Mean binary cross-entropy of predictions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/base/cross_entropy.h"
#include "worker/model/metric/exact_sum.h"

namespace cistern {

// -(y log p + (1 - y) log(1 - p)) in double, p clipped to [1e-7, 1 - 1e-7] as the published CTR
// tables do.
inline constexpr double kMostCertain = 1e-7;
inline double ClippedCrossEntropy(double label, double prediction) {
  const double p = std::clamp(prediction, kMostCertain, 1.0 - kMostCertain);
  return -(label * std::log(p) + (1.0 - label) * std::log1p(-p));
}

// The cross-entropy of sigmoid(margin), not clipped: what the loss layers take the mean of. A
// probability is a number next to 1 too soon to tell it.
inline double CrossEntropyOfMargin(double label, double margin) {
  return LogLossOf(margin, label);
}

// Clipped as above.
inline double ClippedCrossEntropyOfMargin(double label, double margin) {
  const double most = std::log1p(-kMostCertain) - std::log(kMostCertain);
  return CrossEntropyOfMargin(label, std::clamp(margin, -most, most));
}

// The mean of cross-entropies: each counts the same, whatever batch it came in.
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
  // 0 of none.
  double Value() const { return count_ == 0 ? 0.0 : sum_.Value() / static_cast<double>(count_); }

 private:
  ExactSum sum_;
  uint64_t count_ = 0;
};

}  // namespace cistern
