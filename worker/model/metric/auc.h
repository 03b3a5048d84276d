// The exact area under the ROC curve.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern::model {

// Counts pairs of a positive and a negative sample: the Mann-Whitney statistic (Hanley and McNeil,
// 1982). The counts are integers of 64 and 128 bits, so that only the final division rounds. Add
// scores in ascending order, all samples with the same score in one call.
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
  // The probability that a positive scores above a negative; a tie counts one half. Requires both
  // classes.
  double Area() const {
    return static_cast<double>(twice_pairs_) /
           (2.0 * static_cast<double>(positives_) * static_cast<double>(negatives_));
  }

 private:
  unsigned __int128 twice_pairs_ = 0;  // 2 * (pairs in the right order + ties / 2)
  uint64_t positives_ = 0, negatives_ = 0;
};

// The same for samples with weights: a pair counts as the product of its weights. Sums are in
// double, in the order of the calls.
//
// Threads: one at a time.
class WeightedPairCount {
 public:
  // Sums of weights.
  void AddTied(double positives, double negatives) {
    twice_pairs_ += positives * (2 * negatives_ + negatives);
    positives_ += positives;
    negatives_ += negatives;
  }
  bool has_both_classes() const { return positives_ > 0 && negatives_ > 0; }
  double count() const { return positives_ + negatives_; }
  double Area() const { return twice_pairs_ / (2 * positives_ * negatives_); }

 private:
  double twice_pairs_ = 0, positives_ = 0, negatives_ = 0;
};

// Returns the AUC, weighted by the samples' weights (scikit-learn's roc_auc_score with
// sample_weight).
//
// scores: sorted.
// kFailedPrecondition if one class is missing, because the area is undefined then.
absl::StatusOr<double> Auc(const RankedScores& scores);

// How far an AUC of independent samples is from that of endless data: its standard error, as
// Hanley and McNeil (1982) estimate it, for samples without weights. Requires both classes.
double AucStandardError(double auc, uint64_t positives, uint64_t negatives);

}  // namespace cistern::model
