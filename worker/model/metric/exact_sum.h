// A sum of numbers that does not depend on their order.
#pragma once

#include <algorithm>
#include <cmath>

namespace cistern {

// Sums in fixed point: each number counts as a multiple of 2^-64, and integers add exactly, so that
// numbers in any order, or sums of parts of them, give the same bits. A number loses less than
// 2^-64; beyond +-2^40 it counts as that, so that 2^23 of the largest fit.
//
// Threads: one at a time.
class ExactSum {
 public:
  // x: not NaN.
  void Add(double x) {
    units_ += static_cast<__int128>(std::ldexp(std::clamp(x, -0x1p40, 0x1p40), 64));
  }
  void Merge(const ExactSum& other) { units_ += other.units_; }
  double Value() const { return std::ldexp(static_cast<double>(units_), -64); }

 private:
  __int128 units_ = 0;
};

}  // namespace cistern
