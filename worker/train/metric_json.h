// Writes metrics as fields of a JSON object: counts as integers, undefined values as null.
//
// Included by .cc files only: the JSON library is slow to compile.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "worker/model/metric/metric_name.h"

namespace cistern {

inline void PutMetrics(const MetricValues& metrics, nlohmann::ordered_json* object) {
  for (const MetricValue& metric : metrics) {
    nlohmann::ordered_json& value = (*object)[metric.name];
    if (!metric.value) {
      value = nullptr;
    } else if (metric.is_count) {
      value = static_cast<uint64_t>(*metric.value);
    } else {
      value = *metric.value;
    }
  }
}

}  // namespace cistern
