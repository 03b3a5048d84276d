// Trains a model with its progress on the console, for `train` and `tune`.
#pragma once

#include <functional>

#include "app/train/train_run.h"
#include "cli/terminal/report.h"

namespace cistern::cli {

// app::TrainRun until its end or until a signal (interrupt.h). Each event is shown, then
// `goes_on` decides whether the run continues. Nobody else uses the console meanwhile.
absl::StatusOr<app::TrainRunResult> TrainOnConsole(
    const model::ModelConfig& config, const app::TrainRunOptions& options, Console& console,
    const std::function<bool(const Progress&)>& goes_on);

}  // namespace cistern::cli
