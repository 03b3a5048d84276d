#include "worker/model/metric/bucket_error.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace cistern::model {
namespace {

constexpr size_t kBuckets = 1000000;
constexpr double kMaxSpan = 0.01, kRelativeErrorBound = 0.05;

size_t BucketOf(float score) {
  const double place = std::clamp(static_cast<double>(score), 0.0, 1.0) * kBuckets;
  return std::min(static_cast<size_t>(place), kBuckets - 1);
}

// Adds up the weights of the scores in `bucket` from `begin` on, and moves `begin` past them.
double TakeBucket(const ScoresOfClass& of, size_t bucket, size_t* begin) {
  double sum = 0;
  for (; *begin < of.size() && BucketOf(of.scores()[*begin]) <= bucket; ++*begin) {
    sum += static_cast<double>(of.weight(*begin));
  }
  return sum;
}

}  // namespace

absl::StatusOr<double> BucketError(const RankedScores& scores) {
  CISTERN_CHECK(scores.is_sorted());
  double range_begin = -1;  // no range is open
  double shows = 0, clicks = 0, predicted = 0;
  double error_sum = 0, error_shows = 0;
  size_t p = 0, n = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    const double ctr = static_cast<double>(bucket) / kBuckets;
    if (std::fabs(ctr - range_begin) > kMaxSpan) {
      range_begin = ctr;
      shows = clicks = predicted = 0;
    }
    const double new_clicks = TakeBucket(scores.positives(), bucket, &p);
    const double new_shows = new_clicks + TakeBucket(scores.negatives(), bucket, &n);
    shows += new_shows;
    clicks += new_clicks;
    predicted += ctr * new_shows;
    if (predicted == 0) continue;
    const double mean = predicted / shows;
    if (!(std::sqrt((1 - mean) / (mean * shows)) < kRelativeErrorBound)) continue;
    error_sum += std::fabs(clicks / shows / mean - 1) * shows;
    error_shows += shows;
    range_begin = -1;
  }
  if (error_shows == 0) {
    return absl::FailedPreconditionError(
        "BucketError is undefined: no range of predictions has enough samples");
  }
  return error_sum / error_shows;
}

}  // namespace cistern::model
