// The area under the ROC curve, exact.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/status.h"

namespace cistern {

// Collects scores and ranks them: the probability that a positive scores above a negative, ties
// counting one half (the Mann-Whitney statistic; Hanley and McNeil, 1982). Counts are 64-bit
// integers, so nothing is lost to rounding before the last division.
//
// Memory: 5 bytes a sample. Threads: one at a time.
class Auc {
 public:
  // labels, scores: [n]; a label above 0.5 is positive. NaN scores are refused by Value.
  void Add(absl::Span<const float> labels, absl::Span<const float> scores);
  // Adds what another collected, e.g. for another part of the data.
  void Merge(const Auc& other);

  // kFailedPrecondition if one class is missing (the area is undefined then), kDataLoss if a score
  // is NaN; each says so.
  absl::StatusOr<double> Value() const;

 private:
  std::vector<float> scores_;
  std::vector<uint8_t> positive_;
};

}  // namespace cistern
