#include "worker/model/metric/auc.h"

#include <algorithm>

#include "common/base/check.h"

namespace cistern {
namespace {

// Counts the scores equal to `score` from `begin` on, and moves `begin` past them.
uint64_t TakeTied(absl::Span<const float> scores, float score, size_t* begin) {
  const size_t first = *begin;
  while (*begin < scores.size() && scores[*begin] == score) ++*begin;
  return *begin - first;
}

}  // namespace

absl::StatusOr<double> Auc(const RankedScores& scores) {
  CISTERN_CHECK(scores.is_sorted());
  const absl::Span<const float> positives = scores.positives(), negatives = scores.negatives();
  if (scores.size() == 0) {
    return absl::FailedPreconditionError("AUC is undefined: there are no predictions");
  }
  if (positives.empty() || negatives.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("AUC is undefined: all ", scores.size(),
                                                      " labels are ",
                                                      positives.empty() ? "negative" : "positive"));
  }
  PairCount pairs;
  for (size_t p = 0, n = 0; p < positives.size() || n < negatives.size();) {
    const float score = p == positives.size()   ? negatives[n]
                        : n == negatives.size() ? positives[p]
                                                : std::min(positives[p], negatives[n]);
    const uint64_t tied_positives = TakeTied(positives, score, &p);
    pairs.AddTied(tied_positives, TakeTied(negatives, score, &n));
  }
  return pairs.Area();
}

}  // namespace cistern
