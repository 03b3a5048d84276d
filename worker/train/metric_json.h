// Metrics and idle times as JSON.
//
// Included by .cc files only: the JSON library is slow to compile.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "worker/model/metric/metric_name.h"
#include "worker/pass/idle_times.h"

namespace cistern {

// Counts as integers, undefined values as null.
inline void PutMetrics(const model::MetricValues& metrics, nlohmann::ordered_json* object) {
  for (const model::MetricValue& metric : metrics) {
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

// idle: shares.
inline nlohmann::ordered_json JsonOf(const IdleTimes& idle) {
  return {{"share", idle.total()},
          {"data", idle.data},
          {"pull", idle.pull},
          {"carry_over", idle.carry_over},
          {"commit", idle.commit}};
}

inline nlohmann::ordered_json JsonOf(const BusyTime& busy) {
  return {{"share", busy.share}, {"seconds", busy.seconds}};
}

}  // namespace cistern
