// Text or a data set packed into tar shards.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/data/prepare/pack.h"

namespace cistern::app {

struct PackDataOptions
    : data::PackOptions {  // `data` and `groups` are filled from the options below
  // A model file whose training data is packed instead of text, with its overrides.
  std::string model;
  std::vector<std::string> set;
  // "LEAST:END", for folders of samples by length (ParseLengthGroup).
  std::vector<std::string> group_texts;
};

// calls.amount counts samples. calls.stop keeps the shards so far: the same call continues. Errors
// of Pack, with a missing file as kInvalidArgument.
absl::StatusOr<data::PackSummary> PackData(PackDataOptions options, const JobCalls& calls);

// Of all shards, in bytes.
uint64_t PackedBytes(const data::PackSummary& summary);

nlohmann::ordered_json JsonOf(const data::PackSummary& summary);

}  // namespace cistern::app
