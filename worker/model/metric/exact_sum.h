// A sum of floating-point numbers that does not depend on their order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cistern::model {

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

// The sum of weights, in any order as well: a whole number of ones, and the others.
//
// Threads: one at a time.
class WeightSum {
 public:
  void Add(double weight) {
    if (weight == 1) {
      ++ones_;
    } else {
      others_.Add(weight);
    }
  }
  void Merge(const WeightSum& other) {
    ones_ += other.ones_;
    others_.Merge(other.others_);
  }
  double Value() const { return static_cast<double>(ones_) + others_.Value(); }

 private:
  uint64_t ones_ = 0;
  ExactSum others_;
};

}  // namespace cistern::model
