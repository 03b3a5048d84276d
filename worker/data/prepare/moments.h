// Mean and deviation of the numbers of a column.
#pragma once

#include <cmath>
#include <cstdint>

namespace cistern::data {

// Welford 1962.
//
// Threads: one at a time.
struct Moments {
  uint64_t count = 0;
  double mean = 0, squares = 0;
  void Add(double x) {
    const double before = x - mean;
    mean += before / static_cast<double>(++count);
    squares += before * (x - mean);
  }
  // 1 for a column that does not vary: its values become 0.
  double deviation() const {
    const double variance = count == 0 ? 0 : squares / static_cast<double>(count);
    return variance > 0 ? std::sqrt(variance) : 1;
  }
};

}  // namespace cistern::data
