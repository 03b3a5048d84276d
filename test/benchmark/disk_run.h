// Functions shared by the benchmarks that measure a disk.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/status.h"

namespace cistern {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// On an error, prints its message and ends the program.
inline void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "benchmark: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Drops the page cache; has no effect unless run as root.
inline void DropCaches() {
  sync();
  std::FILE* file = std::fopen("/proc/sys/vm/drop_caches", "w");
  if (file == nullptr) return;
  std::fputs("3", file);
  std::fclose(file);
}

}  // namespace cistern
