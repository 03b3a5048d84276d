#include "app/table/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cistern::app {
namespace {

// A range is named by the sign, the exponent and the first 5 fraction bits of an IEEE double.
constexpr int kDroppedBits = 52 - 5;

// The range of x. Ascends with x; 0 for zero.
int64_t RangeOf(double x) {
  if (x == 0) return 0;
  const int64_t bits = std::bit_cast<int64_t>(std::abs(x)) >> kDroppedBits;
  return x > 0 ? bits + 1 : -bits - 1;
}

// The middle of a range.
double ValueOf(int64_t range) {
  if (range == 0) return 0;
  const int64_t bits = std::abs(range) - 1;
  const double low = std::bit_cast<double>(bits << kDroppedBits);
  const double high = std::bit_cast<double>((bits + 1) << kDroppedBits);
  const double middle = std::isfinite(high) ? low + (high - low) / 2 : low;
  return range > 0 ? middle : -middle;
}

}  // namespace

void Histogram::Add(double x) {
  if (std::isnan(x)) {
    ++nan_count_;
    return;
  }
  min_ = count_ == 0 ? x : std::min(min_, x);
  max_ = count_ == 0 ? x : std::max(max_, x);
  ++count_;
  sum_ += x;
  ++ranges_[RangeOf(x)];
}

double Histogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  if (q <= 0) return min_;
  if (q >= 1) return max_;
  const double rank = q * static_cast<double>(count_ - 1);
  uint64_t before = 0;
  for (const auto& [range, count] : ranges_) {
    before += count;
    if (static_cast<double>(before) > rank) return std::clamp(ValueOf(range), min_, max_);
  }
  return max_;
}

std::vector<Histogram::Bucket> Histogram::Buckets() const {
  std::vector<Bucket> buckets;
  for (const auto& [range, count] : ranges_) {
    Bucket bucket;
    if (range != 0) {
      const double low = std::exp2(std::floor(std::log2(std::abs(ValueOf(range)))));
      bucket.low = range > 0 ? low : -2 * low;
      bucket.high = range > 0 ? 2 * low : -low;
    }
    if (buckets.empty() || buckets.back().low != bucket.low || buckets.back().high != bucket.high) {
      buckets.push_back(bucket);
    }
    buckets.back().count += count;
  }
  return buckets;
}

}  // namespace cistern::app
