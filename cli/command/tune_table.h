// What `cistern tune` reports about its trials.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/tune/search.h"

namespace cistern::cli {

// A row for each trial, the best first.
std::string TrialsTable(const std::vector<app::Trial>& trials);
nlohmann::ordered_json TrialsJson(const std::vector<app::Trial>& trials, const std::string& out);

}  // namespace cistern::cli
