#include "worker/metric/auc.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/check.h"

namespace cistern {
namespace {

// Maps a score to an integer of the same order, so that (score, label) sorts as one word.
uint64_t SortKey(float score, uint8_t positive) {
  if (score == 0.0f) score = 0.0f;  // -0 and +0 tie
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof(bits));
  bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return (uint64_t{bits} << 1) | positive;
}

}  // namespace

void Auc::Add(absl::Span<const float> labels, absl::Span<const float> scores) {
  CISTERN_CHECK(labels.size() == scores.size());
  scores_.insert(scores_.end(), scores.begin(), scores.end());
  for (float label : labels) positive_.push_back(label > 0.5f ? 1 : 0);
}

void Auc::Merge(const Auc& other) {
  scores_.insert(scores_.end(), other.scores_.begin(), other.scores_.end());
  positive_.insert(positive_.end(), other.positive_.begin(), other.positive_.end());
}

absl::StatusOr<double> Auc::Value() const {
  std::vector<uint64_t> order(scores_.size());
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (std::isnan(scores_[i])) {
      return absl::DataLossError(absl::StrCat("the prediction of sample ", i, " is NaN"));
    }
    order[i] = SortKey(scores_[i], positive_[i]);
  }
  std::sort(order.begin(), order.end());
  // Twice the number of (positive, negative) pairs in the right order, a tie being one half of one.
  unsigned __int128 twice_pairs = 0;
  uint64_t positives = 0, negatives = 0;
  for (size_t begin = 0; begin < order.size();) {
    uint64_t tied_positives = 0, tied_negatives = 0;
    size_t end = begin;
    for (; end < order.size() && order[end] >> 1 == order[begin] >> 1; ++end) {
      ++((order[end] & 1) != 0 ? tied_positives : tied_negatives);
    }
    twice_pairs +=
        static_cast<unsigned __int128>(tied_positives) * (2 * negatives + tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) {
    return absl::FailedPreconditionError(absl::StrCat("AUC is undefined: all ", scores_.size(),
                                                      " labels are ",
                                                      positives == 0 ? "negative" : "positive"));
  }
  return static_cast<double>(twice_pairs) /
         (2.0 * static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace cistern
