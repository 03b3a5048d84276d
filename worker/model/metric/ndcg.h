// The quality of a ranking: NDCG, and the hit rate of its head.
#pragma once

#include "common/base/status.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern::model {

// Returns NDCG, the normalized discounted cumulative gain (Jaervelin and Kekaelaeinen 2002) of all
// predictions as one ranking, as HugeCTR 3.x computes it: the sum over positive samples of
// 1 / log2(rank + 1), divided by the largest that this sum can be. Samples with the same prediction
// share the mean discount of their ranks (McSherry and Najork 2008; scikit-learn's ndcg_score).
//
// A sample of weight w counts as w samples; a fraction takes that share of a rank. scores: sorted.
// kFailedPrecondition if no sample is positive.
absl::StatusOr<double> Ndcg(const RankedScores& scores);

// Predictions above this are hits or misses of HitRate (HugeCTR 3.x, metrics.cu).
inline constexpr double kHitThreshold = 0.8;

// Returns the share of positive samples among those predicted above kHitThreshold, by weight.
//
// scores: sorted. kFailedPrecondition if there is no such prediction.
absl::StatusOr<double> HitRate(const RankedScores& scores);

}  // namespace cistern::model
