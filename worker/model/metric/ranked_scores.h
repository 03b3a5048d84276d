// Predictions in the order of their size, by class: what AUC and bucket error are computed from.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"

namespace cistern {

// Puts numbers, none below +0 and no NaN, into ascending order.
using SortFloats = std::function<void(std::vector<float>*)>;

// Memory: 4 bytes a prediction. Threads: one at a time.
class RankedScores {
 public:
  // label: above 0.5 is positive. score: not NaN; -0 and +0 are the same.
  void Add(float label, float score) {
    std::vector<float>& scores = label > 0.5f ? positives_ : negatives_;
    scores.push_back(score + 0.0f);
    is_sorted_ = false;
  }
  // Adds what another collected, e.g. of another label.
  void Merge(const RankedScores& other);

  // Must come after the last Add or Merge and before the scores are read. Empty: std::sort.
  void Sort(const SortFloats& sort = nullptr);
  // Ascending.
  absl::Span<const float> positives() const { return positives_; }
  absl::Span<const float> negatives() const { return negatives_; }
  uint64_t size() const { return positives_.size() + negatives_.size(); }
  bool is_sorted() const { return is_sorted_; }

 private:
  std::vector<float> positives_, negatives_;
  bool is_sorted_ = true;
};

}  // namespace cistern
