// Finds the files of each table in the folder of a foreign model (load_plan.h).
#pragma once

#include <string>

#include "server/saved_model/load_plan.h"

namespace cistern::server {

// kFailedPrecondition: the store has no tables, or lacks one of options.tables; a table has another
// number of files than there are shards. kNotFound: the folder does not exist, or has nothing for a
// table. kDataLoss: a file number cannot be read, occurs twice or is missing.
absl::StatusOr<LoadPlan> PlanForeignLoad(FileSystem& disk, const TableStore& store,
                                         const std::string& folder, const LoadOptions& options);

}  // namespace cistern::server
