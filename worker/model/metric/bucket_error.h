// The calibration error of predictions, by range of the predicted value.
#pragma once

#include "common/base/status.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern::model {

// Returns the bucket error of PSLib and Paddle (BasicAucCalculator::calculate_bucket_error).
// Predictions are rounded down to one of 1,000,000 buckets. A sweep over the buckets collects
// ranges that are at most 0.01 wide and have enough samples that the relative standard error of
// their mean prediction p, sqrt((1 - p) / (p * samples)), is below 0.05. The error is the mean of
// |actual / p - 1| over the ranges, weighted by samples. Samples outside these ranges are left out.
//
// A sample of weight w counts as w samples. scores: sorted, in [0, 1].
// kFailedPrecondition if no range has enough samples (Paddle returns 0 then).
absl::StatusOr<double> BucketError(const RankedScores& scores);

}  // namespace cistern::model
