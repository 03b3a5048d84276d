// What the benchmarks share: a clock, an end at an error, keys, cold disks.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/status.h"
#include "common/base/steady_time.h"
#include "common/base/types.h"

namespace cistern {

using Clock = std::chrono::steady_clock;

// On an error, prints its message and ends the program.
inline void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "benchmark: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Key number i. Keys are distinct and spread over all shards.
inline Key KeyAt(uint64_t i) {
  return (i * 0x9E3779B97F4A7C15ull) & (kReservedKey64 >> 1);
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
