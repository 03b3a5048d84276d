// The data of a training run: several files of a table, --more, and the test data of its end.
#pragma once

#include "cli/command/train_command.h"
#include "worker/train/jobs.h"

namespace cistern {

// Takes several files of one table as one. kInvalidArgument, with a fix: one of them is no table.
absl::Status TakeTables(TrainFlags* flags);

// Makes --more the data of the run. Text is converted first, below the run folder.
absl::Status TakeMore(const app::WorkerRank& worker, Console& console, TrainFlags* flags);

// kInvalidArgument, with a fix: --stream with a table, or with other data.
absl::Status CheckStream(const TrainFlags& flags);

// With --valid and --test: adds the score of the test data, which no choice has seen.
void AddFinalTest(const EvalSummary& score, const std::string& file, Report* report);

}  // namespace cistern
