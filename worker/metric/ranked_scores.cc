#include "worker/metric/ranked_scores.h"

#include <algorithm>

namespace cistern {

void RankedScores::Merge(const RankedScores& other) {
  positives_.insert(positives_.end(), other.positives_.begin(), other.positives_.end());
  negatives_.insert(negatives_.end(), other.negatives_.begin(), other.negatives_.end());
  is_sorted_ = false;
}

void RankedScores::Sort() {
  if (is_sorted_) return;
  std::sort(positives_.begin(), positives_.end());
  std::sort(negatives_.begin(), negatives_.end());
  is_sorted_ = true;
}

}  // namespace cistern
