// How far predictions are from what happened, range by range of their size.
#pragma once

#include "common/base/status.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern {

// The bucket error of PSLib and Paddle (BasicAucCalculator::calculate_bucket_error): predictions
// are rounded down to one of 1,000,000 buckets; a sweep over these collects ranges that are at most
// 0.01 wide and hold so many samples that the relative standard error of their mean prediction p,
// sqrt((1 - p) / (p * samples)), is below 0.05. The error is the mean of |actual / p - 1| over the
// ranges, weighted by samples; what lies in no such range is left out.
//
// scores: sorted, in [0, 1]. kFailedPrecondition: no range has enough samples (Paddle says 0 then).
absl::StatusOr<double> BucketError(const RankedScores& scores);

}  // namespace cistern
