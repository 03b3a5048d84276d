// The area under the ROC curve, exact.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern {

// Pairs of a positive and a negative: the Mann-Whitney statistic (Hanley and McNeil, 1982), in
// 64-bit and wider integers, so that nothing is lost to rounding before the last division. Scores
// come in ascending order, those that tie together.
//
// Threads: one at a time.
class PairCount {
 public:
  void AddTied(uint64_t positives, uint64_t negatives) {
    twice_pairs_ += static_cast<unsigned __int128>(positives) * (2 * negatives_ + negatives);
    positives_ += positives;
    negatives_ += negatives;
  }
  bool has_both_classes() const { return positives_ > 0 && negatives_ > 0; }
  uint64_t positives() const { return positives_; }
  uint64_t count() const { return positives_ + negatives_; }
  // The probability that a positive scores above a negative, ties counting one half. Both classes
  // must be there.
  double Area() const {
    return static_cast<double>(twice_pairs_) /
           (2.0 * static_cast<double>(positives_) * static_cast<double>(negatives_));
  }

 private:
  unsigned __int128 twice_pairs_ = 0;  // pairs in the right order, a tie being one half of one
  uint64_t positives_ = 0, negatives_ = 0;
};

// scores: sorted. kFailedPrecondition if one class is missing: the area is undefined then, and the
// message says so.
absl::StatusOr<double> Auc(const RankedScores& scores);

}  // namespace cistern
