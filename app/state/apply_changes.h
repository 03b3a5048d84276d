// Writes the saved model that a base and its increments are.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"

namespace cistern::app {

struct ApplyChangesOptions {
  std::string base;                     // STATE, STATE@COMMIT, or the folder of a saved model
  std::vector<std::string> increments;  // folders, in order
  std::string out;                      // the saved model to write: a new folder
};

struct AppliedChanges {
  v1::IncrementState state;  // of the saved model
  size_t applied = 0;        // increments that the base did not have
  uint64_t rows = 0, bytes = 0;
};

// Writes the model that `base` is after the increments. Its rows have the digests that the last
// increment records. Memory holds the rows of the increments. Errors as SaveChanges;
// kFailedPrecondition, with a fix: the base is at no point of the increments.
absl::StatusOr<AppliedChanges> ApplyChanges(const ApplyChangesOptions& options,
                                            const JobCalls& calls);

nlohmann::ordered_json JsonOf(const AppliedChanges& applied);

}  // namespace cistern::app
