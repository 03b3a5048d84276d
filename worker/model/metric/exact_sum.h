// A sum of floating-point numbers that does not depend on their order.
#pragma once

#include <algorithm>
#include <cmath>

namespace cistern {

// Sums in fixed point: each number is truncated to a multiple of 2^-64, and the integers add
// exactly. Therefore any order, and any split into partial sums, gives the same bits. Truncation
// loses less than 2^-64 per number. Numbers are clamped to [-2^40, 2^40], so that at least 2^23 of
// them fit.
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
