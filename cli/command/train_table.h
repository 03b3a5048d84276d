// cistern train with a table (CSV, TSV) in place of the model file.
#pragma once

#include "app/run/run_folder.h"
#include "cli/command/train_command.h"

namespace cistern {

// If flags->model.config is a table: makes model, recipe and data below the run folder, and
// replaces it by the model file. Otherwise does nothing.
//
// kInvalidArgument, with a fix: flags that cannot be combined with a table or, with a model file,
// flags for tables only; several workers, each of which would convert; and the errors of
// PrepareRunFolder and MakeModel.
absl::Status TakeTable(const app::WorkerRank& worker, const app::RunFolder& run, Console& console,
                       TrainFlags* flags);

}  // namespace cistern
