#include "worker/model/metric/group_auc.h"

#include <algorithm>
#include <bit>

#include "worker/model/metric/auc.h"
#include "worker/model/metric/exact_sum.h"

namespace cistern::model {
namespace {

// Maps a score to an integer that preserves its order, so that (score, class, weight) sorts as one
// word.
uint64_t SortKey(float score, bool positive, float weight) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 and +0 tie
  const uint32_t order = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{order} << 32 | uint64_t{positive} << 31 | std::bit_cast<uint32_t>(weight);
}

float WeightOf(uint64_t key) {
  return std::bit_cast<float>(static_cast<uint32_t>(key) & 0x7fffffffu);
}

}  // namespace

void GroupAuc::Add(Key group, float label, float score, float weight) {
  if (weight == 0) return;
  weighted_ = weighted_ || weight != 1;
  samples_.push_back({group, SortKey(score, label > 0.5f, weight)});
}

void GroupAuc::Merge(const GroupAuc& other) {
  weighted_ = weighted_ || other.weighted_;
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  ungrouped_ += other.ungrouped_;
}

GroupAuc::Result GroupAuc::Value() {
  std::sort(samples_.begin(), samples_.end());
  return weighted_ ? ValueOf<WeightedPairCount, double>() : ValueOf<PairCount, uint64_t>();
}

template <typename Pairs, typename Amount>
GroupAuc::Result GroupAuc::ValueOf() {
  Result result;
  result.samples = samples_.size() + ungrouped_;
  result.samples_left_out = ungrouped_;
  ExactSum area;      // sum over groups of area * weight
  WeightSum counted;  // the weights of these groups
  for (size_t i = 0; i < samples_.size();) {
    const Key group = samples_[i].group;
    const size_t first = i;
    Pairs pairs;
    while (i < samples_.size() && samples_[i].group == group) {
      const uint64_t score = samples_[i].score >> 32;
      Amount tied[2] = {0, 0};
      for (; i < samples_.size() && samples_[i].group == group && samples_[i].score >> 32 == score;
           ++i) {
        tied[samples_[i].score >> 31 & 1] += static_cast<Amount>(WeightOf(samples_[i].score));
      }
      pairs.AddTied(tied[1], tied[0]);
    }
    ++result.groups;
    if (pairs.has_both_classes()) {
      area.Add(pairs.Area() * static_cast<double>(pairs.count()));
      counted.Add(static_cast<double>(pairs.count()));
    } else {
      ++result.left_out;
      result.samples_left_out += i - first;
    }
  }
  if (counted.Value() > 0) result.area = area.Value() / counted.Value();
  return result;
}

}  // namespace cistern::model
