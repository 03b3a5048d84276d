// Sorted predictions of each class, from which AUC and bucket error are computed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"

namespace cistern::model {

// Sorts numbers in ascending order. The numbers are at least +0 and not NaN.
using SortFloats = std::function<void(std::vector<float>*)>;

// The predictions of one class, and the weights of their samples.
//
// Threads: one at a time.
class ScoresOfClass {
 public:
  void Add(float score, float weight);
  void Merge(const ScoresOfClass& other);
  // Ascending by score, then by weight.
  void Sort(const SortFloats& sort);

  absl::Span<const float> scores() const { return scores_; }
  size_t size() const { return scores_.size(); }
  // True if a weight is not 1.
  bool is_weighted() const { return !weights_.empty(); }
  float weight(size_t i) const { return weights_.empty() ? 1.0f : weights_[i]; }

 private:
  std::vector<float> scores_;
  std::vector<float> weights_;  // empty until one of them is not 1
};

// Collects predictions by class and sorts them.
//
// Memory: 4 bytes per prediction; 8 with weights other than 1. Threads: one at a time.
class RankedScores {
 public:
  // label: above 0.5 is positive. score: not NaN; -0 counts as +0. weight: finite and at least 0; a
  // sample of weight 0 is left out.
  void Add(float label, float score, float weight = 1) {
    if (weight == 0) return;
    ScoresOfClass& scores = label > 0.5f ? positives_ : negatives_;
    scores.Add(score + 0.0f, weight);
    is_sorted_ = false;
  }
  // Adds all predictions of another set, e.g. those of another label.
  void Merge(const RankedScores& other);

  // Sorts the predictions. Call it after the last Add or Merge and before reading scores.
  // sort: empty for std::sort; not used with weights.
  void Sort(const SortFloats& sort = nullptr);
  const ScoresOfClass& positives() const { return positives_; }
  const ScoresOfClass& negatives() const { return negatives_; }
  uint64_t size() const { return positives_.size() + negatives_.size(); }
  bool is_sorted() const { return is_sorted_; }
  bool is_weighted() const { return positives_.is_weighted() || negatives_.is_weighted(); }

 private:
  ScoresOfClass positives_, negatives_;
  bool is_sorted_ = true;
};

}  // namespace cistern::model
