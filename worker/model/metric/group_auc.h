// AUC within groups, e.g. of a user's impressions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern {

// GAUC: the mean of the AUCs of the groups, weighted by their samples; groups of one class have no
// AUC and are left out (Zhu et al., 2017).
//
// Memory: 16 bytes a sample. Threads: one at a time.
class GroupAuc {
 public:
  // label: above 0.5 is positive. score: not NaN.
  void Add(Key group, float label, float score);
  // A sample that belongs to no group: left out and counted.
  void AddUngrouped() { ++ungrouped_; }
  void Merge(const GroupAuc& other);

  struct Result {
    uint64_t groups = 0, left_out = 0;  // all of them; those of one class
    uint64_t samples = 0, samples_left_out = 0;
    double area = 0;  // 0 where all groups are left out
  };
  // Sorts what it holds.
  Result Value();

 private:
  struct Sample {
    Key group;
    uint64_t score;  // order-preserving, the class in the lowest bit
    bool operator<(const Sample& other) const {
      return group != other.group ? group < other.group : score < other.score;
    }
  };
  std::vector<Sample> samples_;
  uint64_t ungrouped_ = 0;
};

}  // namespace cistern
