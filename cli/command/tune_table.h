// What `cistern tune` reports about its trials.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command/tune_search.h"

namespace cistern {

// "learning rate 0.001, dim 8, depth 2".
std::string KnobsText(const ModelKnobs& knobs);
// OUT/trial-003.
std::string TrialFolder(const std::string& out, uint64_t trial);
// The trial with the highest AUC; null: none has one.
const Trial* BestOf(const std::vector<Trial>& trials);
// A row for each trial, the best first.
std::string TrialsTable(const std::vector<Trial>& trials);
nlohmann::ordered_json TrialsJson(const std::vector<Trial>& trials, const std::string& out);

}  // namespace cistern
