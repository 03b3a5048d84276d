// Mean binary cross-entropy of predictions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/types/span.h"
#include "common/check.h"

namespace cistern {

// -mean(y log p + (1 - y) log(1 - p)) in double, p clipped to [1e-7, 1 - 1e-7] as the published CTR
// tables do.
//
// Threads: one at a time.
class LogLoss {
 public:
  // labels, predictions: [n], predictions in [0, 1].
  void Add(absl::Span<const float> labels, absl::Span<const float> predictions) {
    CISTERN_CHECK(labels.size() == predictions.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      const double p = std::clamp(static_cast<double>(predictions[i]), 1e-7, 1.0 - 1e-7);
      const double y = labels[i];
      sum_ -= y * std::log(p) + (1.0 - y) * std::log1p(-p);
    }
    count_ += labels.size();
  }
  void Merge(const LogLoss& other) {
    sum_ += other.sum_;
    count_ += other.count_;
  }
  // 0 of no samples.
  double Value() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  uint64_t count_ = 0;
};

}  // namespace cistern
