// AUC within groups, e.g. within the impressions of each user.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern {

// GAUC: the mean of the groups' AUCs, weighted by their samples (Zhu et al., 2017). A group with
// only one class has no AUC and is left out.
//
// Memory: 16 bytes per sample. Threads: one at a time.
class GroupAuc {
 public:
  // label: above 0.5 is positive. score: not NaN.
  void Add(Key group, float label, float score);
  // Counts a sample without a group among the samples that are left out.
  void AddUngrouped() { ++ungrouped_; }
  void Merge(const GroupAuc& other);

  struct Result {
    uint64_t groups = 0, left_out = 0;  // all groups; those with one class
    uint64_t samples = 0, samples_left_out = 0;
    double area = 0;  // 0 if all groups are left out
  };
  // Computes the result; sorts the samples in place.
  Result Value();

 private:
  struct Sample {
    Key group;
    uint64_t score;  // bits that sort like the score; the lowest bit is the class
    bool operator<(const Sample& other) const {
      return group != other.group ? group < other.group : score < other.score;
    }
  };
  std::vector<Sample> samples_;
  uint64_t ungrouped_ = 0;
};

}  // namespace cistern
