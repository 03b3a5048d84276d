// cistern train with a table (CSV, TSV) in place of the model file.
#pragma once

#include "cli/command/train_command.h"
#include "cli/session/run_folder.h"

namespace cistern {

// If flags->model.config is a table: makes model, recipe and data below the run folder, and
// replaces it by the model file. Otherwise does nothing.
//
// kInvalidArgument, with a fix: flags that do not go with a table, or, with a model file, flags
// that only tables have; several workers, of which each would convert; as PrepareRunFolder and
// MakeModel.
absl::Status TakeTable(const WorkerRank& worker, const RunFolder& run, Console& console,
                       TrainFlags* flags);

}  // namespace cistern
