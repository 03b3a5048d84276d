// AUC within groups, e.g. within the impressions of each user.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern::model {

// GAUC: the mean of the groups' AUCs, weighted by the weights of their samples (Zhu et al., 2017:
// by their number). A group with only one class has no AUC and is left out.
//
// Memory: 16 bytes per sample. Threads: one at a time.
class GroupAuc {
 public:
  // label: above 0.5 is positive. score: not NaN. weight: finite and at least 0; a sample of weight
  // 0 is left out and not counted.
  void Add(Key group, float label, float score, float weight = 1);
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
    // From the highest bit: 32 that sort like the score, the class, and the 31 of the weight, which
    // has no sign.
    uint64_t score;
    bool operator<(const Sample& other) const {
      return group != other.group ? group < other.group : score < other.score;
    }
  };
  template <typename Pairs, typename Amount>
  Result ValueOf();

  std::vector<Sample> samples_;
  bool weighted_ = false;  // a weight is not 1
  uint64_t ungrouped_ = 0;
};

}  // namespace cistern::model
