// cistern train --dry-run: what would be trained, and from what, without data, servers or memory
// for it.
#pragma once

#include "cli/terminal/report.h"
#include "common/base/status.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// The graph layer by layer, the tables with what a row costs, the memory of a step, and the model
// files that solver names: opened and measured. kInvalidArgument, kDataLoss: what training would
// refuse.
absl::StatusOr<Report> DryRun(const ModelConfig& config);

// Bytes of a server's memory that a row of `value_bytes` takes: key and value, rounded up to 8
// bytes (server/table/row_map.h), and about 10 of the index (bucket_index.h).
size_t ServerRowBytes(size_t value_bytes);

}  // namespace cistern
