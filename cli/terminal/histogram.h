// Many numbers as few: how many there are between powers of two, and their quantiles.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace cistern {

// Numbers are kept as counts of small ranges, 32 to a power of two, so a quantile is off by 1/64 of
// itself at most; count, least, greatest and mean are exact.
//
// Threads: one at a time.
class Histogram {
 public:
  void Add(double x);  // NaN is only counted

  uint64_t count() const { return count_; }  // without NaN
  uint64_t nan_count() const { return nan_count_; }
  // Of no numbers: 0.
  double min() const { return count_ == 0 ? 0 : min_; }
  double max() const { return count_ == 0 ? 0 : max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // q in [0, 1].
  double Quantile(double q) const;

  // Numbers between two powers of two, ascending: low <= x < high, or, below zero, low < x <= high.
  // Zero has a bucket of its own, {0, 0}.
  struct Bucket {
    double low = 0, high = 0;
    uint64_t count = 0;
  };
  // Only those that are not empty.
  std::vector<Bucket> Buckets() const;

 private:
  std::map<int64_t, uint64_t> ranges_;  // by the first bits of the number, in its order
  uint64_t count_ = 0, nan_count_ = 0;
  double min_ = 0, max_ = 0, sum_ = 0;
};

}  // namespace cistern
