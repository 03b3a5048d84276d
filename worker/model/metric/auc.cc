#include "worker/model/metric/auc.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace cistern::model {
namespace {

// Counts the scores equal to `score` from `begin` on, and moves `begin` past them.
void SumTied(const ScoresOfClass& of, float score, size_t* begin, uint64_t* count) {
  const absl::Span<const float> scores = of.scores();
  const size_t first = *begin;
  while (*begin < scores.size() && scores[*begin] == score) ++*begin;
  *count = *begin - first;
}

// Adds up their weights.
void SumTied(const ScoresOfClass& of, float score, size_t* begin, double* sum) {
  const absl::Span<const float> scores = of.scores();
  *sum = 0;
  for (; *begin < scores.size() && scores[*begin] == score; ++*begin) {
    *sum += static_cast<double>(of.weight(*begin));
  }
}

// Amount: what SumTied finds.
template <typename Pairs, typename Amount>
double AreaOf(const ScoresOfClass& positives, const ScoresOfClass& negatives) {
  Pairs pairs;
  for (size_t p = 0, n = 0; p < positives.size() || n < negatives.size();) {
    const float score = p == positives.size() ? negatives.scores()[n]
                        : n == negatives.size()
                            ? positives.scores()[p]
                            : std::min(positives.scores()[p], negatives.scores()[n]);
    Amount tied_positives, tied_negatives;
    SumTied(positives, score, &p, &tied_positives);
    SumTied(negatives, score, &n, &tied_negatives);
    pairs.AddTied(tied_positives, tied_negatives);
  }
  return pairs.Area();
}

}  // namespace

absl::StatusOr<double> Auc(const RankedScores& scores) {
  CISTERN_CHECK(scores.is_sorted());
  const ScoresOfClass &positives = scores.positives(), &negatives = scores.negatives();
  if (scores.size() == 0) {
    return absl::FailedPreconditionError("AUC is undefined: there are no predictions");
  }
  if (positives.size() == 0 || negatives.size() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("AUC is undefined: all ", scores.size(), " labels are ",
                     positives.size() == 0 ? "negative" : "positive"));
  }
  if (scores.is_weighted()) return AreaOf<WeightedPairCount, double>(positives, negatives);
  return AreaOf<PairCount, uint64_t>(positives, negatives);
}

double AucStandardError(double auc, uint64_t positives, uint64_t negatives) {
  CISTERN_CHECK(positives > 0 && negatives > 0);
  const double p = static_cast<double>(positives), n = static_cast<double>(negatives);
  // That two positives score above a negative, and that a positive scores above two negatives.
  const double both = auc / (2 - auc), twice = 2 * auc * auc / (1 + auc);
  const double square = auc * auc;
  const double sum = auc * (1 - auc) + (p - 1) * (both - square) + (n - 1) * (twice - square);
  return std::sqrt(std::max(0.0, sum) / (p * n));
}

}  // namespace cistern::model
