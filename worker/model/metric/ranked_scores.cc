#include "worker/model/metric/ranked_scores.h"

#include <algorithm>

namespace cistern {

void RankedScores::Merge(const RankedScores& other) {
  positives_.insert(positives_.end(), other.positives_.begin(), other.positives_.end());
  negatives_.insert(negatives_.end(), other.negatives_.begin(), other.negatives_.end());
  is_sorted_ = false;
}

void RankedScores::Sort(const SortFloats& sort) {
  if (is_sorted_) return;
  for (std::vector<float>* scores : {&positives_, &negatives_}) {
    if (sort) {
      sort(scores);
    } else {
      std::sort(scores->begin(), scores->end());
    }
  }
  is_sorted_ = true;
}

}  // namespace cistern
