#include "worker/model/metric/ranked_scores.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cistern::model {

void ScoresOfClass::Add(float score, float weight) {
  if (weights_.empty() && weight != 1) weights_.assign(scores_.size(), 1.0f);
  scores_.push_back(score);
  if (is_weighted() || weight != 1) weights_.push_back(weight);
}

void ScoresOfClass::Merge(const ScoresOfClass& other) {
  if (is_weighted() || other.is_weighted()) {
    weights_.resize(scores_.size(), 1.0f);
    for (size_t i = 0; i < other.size(); ++i) weights_.push_back(other.weight(i));
  }
  scores_.insert(scores_.end(), other.scores_.begin(), other.scores_.end());
}

void ScoresOfClass::Sort(const SortFloats& sort) {
  if (!is_weighted()) {
    if (sort) return sort(&scores_);
    std::sort(scores_.begin(), scores_.end());
    return;
  }
  std::vector<std::pair<float, float>> pairs;
  pairs.reserve(size());
  for (size_t i = 0; i < size(); ++i) pairs.emplace_back(scores_[i], weights_[i]);
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 0; i < size(); ++i) std::tie(scores_[i], weights_[i]) = pairs[i];
}

void RankedScores::Merge(const RankedScores& other) {
  positives_.Merge(other.positives_);
  negatives_.Merge(other.negatives_);
  is_sorted_ = false;
}

void RankedScores::Sort(const SortFloats& sort) {
  if (is_sorted_) return;
  positives_.Sort(sort);
  negatives_.Sort(sort);
  is_sorted_ = true;
}

}  // namespace cistern::model
