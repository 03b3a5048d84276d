// Results of jobs as JSON: what `--json` prints, and what Python returns as a dict.
#pragma once

#include <nlohmann/json.hpp>

#include "app/export/publish.h"
#include "worker/train/jobs.h"

namespace cistern::app {

// Seconds, rates and counts stay numbers; missing values become null.
nlohmann::ordered_json JsonOf(const TrainSummary& summary);
nlohmann::ordered_json JsonOf(const EvalSummary& summary);
nlohmann::ordered_json JsonOf(const Published& published);

}  // namespace cistern::app
