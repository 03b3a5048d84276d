// The data of a training run: several files of a table, --more, and the test data of its end.
#pragma once

#include "cli/command/train_command.h"
#include "worker/report/run_record.h"

namespace cistern {

// Takes several files of one table as one. kInvalidArgument, with a fix: one of them is no table.
absl::Status TakeTables(TrainFlags* flags);

// Makes --more the data of the run. Text is converted first, below the run folder.
absl::Status TakeMore(const WorkerRank& worker, Console& console, TrainFlags* flags);

// With --valid and --test: scores the test data, which no choice has seen, with the final model,
// for the report and the record of the run.
absl::Status ScoreFinalTest(const TrainFlags& flags, const ModelConfig& config,
                            ParameterClient& client, const JobOptions& options, Report* report,
                            RunRecord* record);

}  // namespace cistern
