#include "worker/model/metric/group_auc.h"

#include <algorithm>
#include <bit>

#include "worker/model/metric/auc.h"
#include "worker/model/metric/exact_sum.h"

namespace cistern {
namespace {

// Maps a score to an integer that preserves its order, so that (score, class) sorts as one word.
uint64_t SortKey(float score, bool positive) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 and +0 tie
  const uint32_t order = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{order} << 1 | (positive ? 1 : 0);
}

}  // namespace

void GroupAuc::Add(Key group, float label, float score) {
  samples_.push_back({group, SortKey(score, label > 0.5f)});
}

void GroupAuc::Merge(const GroupAuc& other) {
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  ungrouped_ += other.ungrouped_;
}

GroupAuc::Result GroupAuc::Value() {
  std::sort(samples_.begin(), samples_.end());
  Result result;
  result.samples = samples_.size() + ungrouped_;
  result.samples_left_out = ungrouped_;
  ExactSum area;  // sum over groups of area * samples
  for (size_t i = 0; i < samples_.size();) {
    const Key group = samples_[i].group;
    PairCount pairs;
    while (i < samples_.size() && samples_[i].group == group) {
      const uint64_t score = samples_[i].score >> 1;
      uint64_t tied[2] = {0, 0};
      for (; i < samples_.size() && samples_[i].group == group && samples_[i].score >> 1 == score;
           ++i) {
        ++tied[samples_[i].score & 1];
      }
      pairs.AddTied(tied[1], tied[0]);
    }
    ++result.groups;
    if (pairs.has_both_classes()) {
      area.Add(pairs.Area() * static_cast<double>(pairs.count()));
    } else {
      ++result.left_out;
      result.samples_left_out += pairs.count();
    }
  }
  const uint64_t counted = result.samples - result.samples_left_out;
  if (counted > 0) result.area = area.Value() / static_cast<double>(counted);
  return result;
}

}  // namespace cistern
