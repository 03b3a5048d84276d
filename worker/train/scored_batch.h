// The labels, predictions, groups and weights of a batch's samples, the input of evaluation
// metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/group/process_group.h"

namespace cistern {

struct ScoredBatch {
  size_t samples = 0;
  std::vector<float> labels, predictions;  // [samples, label_dim]
  std::vector<double> margins;             // log-odds, likewise
  std::vector<std::optional<Key>> groups;  // [samples], or empty
  std::vector<float> weights;              // [samples], or empty: every weight is 1

  // Concatenates the parts of all workers, by rank, which is the order of the data.
  absl::Status GatherFrom(group::ProcessGroup& group);

 private:
  std::string Pack() const;
  absl::Status Append(const std::string& packed, size_t worker);
};

}  // namespace cistern
