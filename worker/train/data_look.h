// A look at the first samples of a run's data, for mistakes that training would not show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/train/jobs.h"

namespace cistern {

inline constexpr size_t kSamplesLookedAt = 20000;
// Sorted data may hold one value for long: before a column is said to have one value, so many
// samples are read.
inline constexpr size_t kSamplesForConstants = 1000000;

struct DataLook {
  uint64_t samples = 0;             // of the training data
  std::optional<double> positives;  // the share of positive labels among them
  std::vector<std::string> warnings;
};

// Reads up to kSamplesLookedAt samples of the training and of the evaluation data. Warns about
//   - labels other than 0 and 1;
//   - a slot that always holds the same key, a dense column that always holds the same number;
//   - a slot whose key, or a dense column whose number, decides the label;
//   - a learning rate of 0;
//   - fewer streams than workers.
// names: of the columns, for the warnings; a slot without a name is "slots[3]".
// Errors: those of opening and reading the data.
absl::StatusOr<DataLook> LookAtData(const model::ModelConfig& config, const ColumnNames& names = {},
                                    uint64_t workers = 1);

}  // namespace cistern
