#include "worker/model/metric/ndcg.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cistern::model {
namespace {

// 1 / log2(x), the discount of rank x - 1.
double DiscountAt(double x) {
  return std::log(2.0) / std::log(x);
}

// Sums of discounts over ranges of ranks.
//
// Threads: one at a time.
class DiscountSums {
 public:
  DiscountSums() {
    for (size_t n = 1; n < kTable; ++n) {
      first_[n] = first_[n - 1] + DiscountAt(static_cast<double>(n) + 1);
    }
  }

  // The sum over ranks a + 1 to b. A part of a rank counts by its share. 0 <= a <= b.
  double Between(double a, double b) const {
    if (b - a > kFew) return UpTo(b) - UpTo(a);
    double sum = 0;
    for (double rank = std::floor(a); rank < b; ++rank) {
      sum += (std::min(b, rank + 1) - std::max(a, rank)) * DiscountAt(rank + 2);
    }
    return sum;
  }

 private:
  static constexpr size_t kTable = 1024;
  static constexpr double kFew = 64;

  double UpTo(double ranks) const {
    const double whole = std::floor(ranks);
    return FirstOf(whole) + (ranks - whole) * DiscountAt(whole + 2);
  }

  // The sum over ranks 1 to n: by Euler and Maclaurin from the table's last on, with
  // integral of 1 / ln x = li(x) = Ei(ln x).
  double FirstOf(double n) const {
    if (n < kTable) return first_[static_cast<size_t>(n)];
    const double from = kTable, to = n + 1;  // x of the table's last rank, and of rank n
    const auto integral = [](double x) { return std::log(2.0) * std::expint(std::log(x)); };
    const auto slope = [](double x) { return -DiscountAt(x) / (x * std::log(x)); };
    return first_.back() - DiscountAt(from) + integral(to) - integral(from) +
           (DiscountAt(from) + DiscountAt(to)) / 2 + (slope(to) - slope(from)) / 12;
  }

  std::array<double, kTable> first_ = {};  // by the number of ranks
};

// Takes samples from the highest score on, all of one score at a time.
class Descent {
 public:
  explicit Descent(const ScoresOfClass& scores) : scores_(scores), left_(scores.size()) {}
  bool is_over() const { return left_ == 0; }
  float score() const { return scores_.scores()[left_ - 1]; }
  // The weight of the samples of this score, which are behind it then.
  double Take(float score) {
    double weight = 0;
    while (left_ > 0 && scores_.scores()[left_ - 1] == score) {
      weight += double{scores_.weight(--left_)};
    }
    return weight;
  }

 private:
  const ScoresOfClass& scores_;
  size_t left_;
};

double WeightAbove(const ScoresOfClass& scores, double threshold) {
  double weight = 0;
  for (size_t i = scores.size(); i > 0 && double{scores.scores()[i - 1]} > threshold; --i) {
    weight += double{scores.weight(i - 1)};
  }
  return weight;
}

}  // namespace

absl::StatusOr<double> Ndcg(const RankedScores& scores) {
  const DiscountSums discounts;
  Descent positives(scores.positives()), negatives(scores.negatives());
  double gain = 0, ranks = 0, all_positives = 0;
  while (!positives.is_over()) {
    const float score =
        negatives.is_over() ? positives.score() : std::max(positives.score(), negatives.score());
    const double hits = positives.Take(score), tied = hits + negatives.Take(score);
    if (hits > 0) gain += hits / tied * discounts.Between(ranks, ranks + tied);
    ranks += tied;
    all_positives += hits;
  }
  if (all_positives == 0) {
    return absl::FailedPreconditionError("NDCG is undefined: no label is positive");
  }
  return gain / discounts.Between(0, all_positives);
}

absl::StatusOr<double> HitRate(const RankedScores& scores) {
  const double hits = WeightAbove(scores.positives(), kHitThreshold);
  const double all = hits + WeightAbove(scores.negatives(), kHitThreshold);
  if (all == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("HitRate is undefined: no prediction is above ", kHitThreshold));
  }
  return hits / all;
}

}  // namespace cistern::model
