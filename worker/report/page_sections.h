// The sections of a report, each a function from runs to HTML. A section without data is empty.
#pragma once

#include <string>
#include <vector>

#include "worker/report/run_view.h"

namespace cistern::report {

// What was trained, when and how well, and the warnings of the runs.
std::string HeaderSection(const std::vector<RunView>& runs);
// Loss, AUC and log loss over the samples.
std::string CurvesSection(const std::vector<RunView>& runs);
// Calibration by decile, and the scores of both classes.
std::string ScoresSection(const std::vector<RunView>& runs);
// Importance and statistics of slots and columns, and the values that are calibrated worst.
std::string SlotsSection(const std::vector<RunView>& runs);
// What the time was spent on.
std::string TimeSection(const std::vector<RunView>& runs);
// The model files' values, those that differ first.
std::string ConfigurationSection(const std::vector<RunView>& runs);

// The names of the runs, in order.
std::vector<std::string> NamesOf(const std::vector<RunView>& runs);

}  // namespace cistern::report
