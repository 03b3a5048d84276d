// cistern train --dry-run: describes the model and its starting weights without reading data,
// starting servers or allocating memory for training.
#pragma once

#include "app/plan/description.h"
#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace cistern::cli {

// Errors as app::DescribeModel.
absl::StatusOr<Report> DryRun(const model::ModelConfig& config);

}  // namespace cistern::cli
