// What the slots and dense columns of a trained model contribute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"
#include "worker/report/slot_study.h"
#include "worker/train/jobs.h"

namespace cistern {

inline constexpr uint64_t kMaxStudySamples = 1000000;

// Predicts the first `samples` samples of the data (rounded up to whole batches), once as they are
// and once more for each slot and dense column, whose contents are permuted among the samples of a
// batch (permutation importance: Breiman, "Random forests", 2001, section 10).
//
// files: as in Evaluate (jobs.h). samples: 1 to kMaxStudySamples. Several labels of a sample count
// as several samples. Runs on the CPU. Memory: 12 bytes per sample and key, 4 per sample and
// column. Errors: as Evaluate; kInvalidArgument: `samples` is out of range.
absl::StatusOr<report::ModelStudy> StudyModel(const model::ModelConfig& config,
                                              ParameterClient& client,
                                              const std::vector<std::string>& files,
                                              uint64_t samples, const JobOptions& options);

}  // namespace cistern
