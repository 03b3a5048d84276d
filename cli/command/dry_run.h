// cistern train --dry-run: describes the model and its starting weights without reading data,
// starting servers or allocating memory for training.
#pragma once

#include "cli/terminal/report.h"
#include "common/base/status.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// Errors as app::DescribeModel.
absl::StatusOr<Report> DryRun(const ModelConfig& config);

}  // namespace cistern
