// cistern train --dry-run: describes the model and its starting weights without reading data,
// starting servers or allocating memory for training.
#pragma once

#include "cli/terminal/report.h"
#include "common/base/status.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// Reports the graph layer by layer, the tables with the bytes of a row, the memory of a step, and
// the model files that the solver names, which are opened and measured. kInvalidArgument,
// kDataLoss: training would refuse the model or its files.
absl::StatusOr<Report> DryRun(const ModelConfig& config);

// Server memory for a row with `value_bytes`: key and value, rounded up to 8 bytes
// (server/table/row_map.h), plus about 10 bytes of index (bucket_index.h).
size_t ServerRowBytes(size_t value_bytes);

}  // namespace cistern
