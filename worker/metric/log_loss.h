// Mean binary cross-entropy of predictions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "worker/metric/exact_sum.h"

namespace cistern {

// -(y log p + (1 - y) log(1 - p)) in double, p clipped to [1e-7, 1 - 1e-7] as the published CTR
// tables do.
inline double CrossEntropy(double label, double prediction) {
  const double p = std::clamp(prediction, 1e-7, 1.0 - 1e-7);
  return -(label * std::log(p) + (1.0 - label) * std::log1p(-p));
}

// Each prediction counts the same, whatever batch it came in.
//
// Threads: one at a time.
class LogLoss {
 public:
  // prediction: in [0, 1].
  void Add(float label, float prediction, double weight = 1) {
    sum_.Add(weight * CrossEntropy(label, prediction));
    ++count_;
  }
  // Counts a prediction that has no loss.
  void AddNone() { ++count_; }
  void Merge(const LogLoss& other) {
    sum_.Merge(other.sum_);
    count_ += other.count_;
  }
  // 0 of no predictions.
  double Value() const { return count_ == 0 ? 0.0 : sum_.Value() / static_cast<double>(count_); }

 private:
  ExactSum sum_;
  uint64_t count_ = 0;
};

}  // namespace cistern
