// The folder of a foreign model (load_plan.h): which of its files are whose.
#pragma once

#include <string>

#include "server/saved_model/load_plan.h"

namespace cistern {

// kFailedPrecondition: the store has no tables, or not those of options.tables; a table has another
// number of files than there are shards. kNotFound: there is no such folder, or nothing in it for a
// table. kDataLoss: a file whose number cannot be read, comes twice or is missing.
absl::StatusOr<LoadPlan> PlanForeignLoad(FileSystem& disk, const TableStore& store,
                                         const std::string& folder, const LoadOptions& options);

}  // namespace cistern
