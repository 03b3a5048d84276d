// What a training reports at its end.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "worker/train/jobs.h"

namespace cistern {

// Seconds, rates and counts stay numbers; missing values become null.
nlohmann::ordered_json JsonOf(const TrainSummary& summary);
std::string TextOf(const TrainSummary& summary);

}  // namespace cistern
