// What this process takes of its machine: memory, processor time, open files.
#pragma once

#include <cstdint>

#include "common/metrics/metric_text.h"

namespace cistern {

// Figures that the system does not tell are 0.
struct ProcessFigures {
  uint64_t resident_bytes = 0;
  double cpu_seconds = 0;         // of all threads, user and system
  double start_time_seconds = 0;  // of the process, Unix time
  uint64_t open_files = 0, max_open_files = 0;
};

ProcessFigures ReadProcessFigures();

// Adds these figures under the names that Prometheus clients use: process_cpu_seconds_total ...
// Clears the prefix of `text`.
void AddProcessFigures(MetricText* text);

}  // namespace cistern
