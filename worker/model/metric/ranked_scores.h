// Sorted predictions of each class, from which AUC and bucket error are computed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"

namespace cistern {

// Sorts numbers in ascending order. The numbers are at least +0 and not NaN.
using SortFloats = std::function<void(std::vector<float>*)>;

// Collects predictions by class and sorts them.
//
// Memory: 4 bytes per prediction. Threads: one at a time.
class RankedScores {
 public:
  // label: above 0.5 is positive. score: not NaN; -0 counts as +0.
  void Add(float label, float score) {
    std::vector<float>& scores = label > 0.5f ? positives_ : negatives_;
    scores.push_back(score + 0.0f);
    is_sorted_ = false;
  }
  // Adds all predictions of another set, e.g. those of another label.
  void Merge(const RankedScores& other);

  // Sorts the predictions. Call it after the last Add or Merge and before reading scores.
  // sort: empty for std::sort.
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
