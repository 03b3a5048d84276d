// Data files, read and checked.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/inspect.h"

namespace cistern::app {

struct InspectDataOptions : data::InspectOptions {  // source empty: that of the model
  // A model file whose Data layer describes the files, with its overrides; empty: Norm files, which
  // describe themselves.
  std::string model;
  std::vector<std::string> set;
};

// Errors of InspectNorm and InspectDataSet, with a missing file as kInvalidArgument;
// kInvalidArgument too: there are no files, or they have another shape than the model.
absl::StatusOr<data::NormSummary> InspectData(const InspectDataOptions& options);

}  // namespace cistern::app
