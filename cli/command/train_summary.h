// What a training reports at its end.
#pragma once

#include <string>

#include "app/train/train_run.h"
#include "cli/terminal/report.h"

namespace cistern::cli {

std::string TextOf(const TrainSummary& summary);

// Adds the score of the test data `file`, which no choice has seen.
void AddFinalTest(const EvalSummary& score, const std::string& file, Report* report);

}  // namespace cistern::cli
