// The figures of an event of a run, under the names that trackers show.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "worker/train/jobs.h"

namespace cistern::app {

// "train/loss", "train/learning_rate", "train/samples_per_second", "pass/rows", "pass/idle_pull",
// "pass/busy", "eval/auc", "eval/logloss", "eval/calibration_ratio", "eval/ne" ...: finite figures
// only, in a fixed order. Empty for events without any, such as warnings.
std::vector<std::pair<std::string, double>> FiguresOf(const Progress& progress);

// Whether the event takes the run back to its iteration: later figures did not happen.
bool TakesBack(const Progress& progress);

}  // namespace cistern::app
