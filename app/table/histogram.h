// A histogram of doubles in constant memory: counts between powers of two, and quantiles.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace cistern::app {

// Numbers are counted in small ranges, 32 per power of two, so the relative error of a quantile is
// at most 1/64. Count, minimum, maximum and mean are exact.
//
// Threads: one at a time.
class Histogram {
 public:
  void Add(double x);  // a NaN only adds to nan_count()

  uint64_t count() const { return count_; }  // without NaN
  uint64_t nan_count() const { return nan_count_; }
  // 0 if no number was added.
  double min() const { return count_ == 0 ? 0 : min_; }
  double max() const { return count_ == 0 ? 0 : max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // q in [0, 1].
  double Quantile(double q) const;

  // The numbers between two powers of two: low <= x < high, or low < x <= high below zero. Zero has
  // its own bucket, {0, 0}.
  struct Bucket {
    double low = 0, high = 0;
    uint64_t count = 0;
  };
  // The non-empty buckets, ascending.
  std::vector<Bucket> Buckets() const;

 private:
  std::map<int64_t, uint64_t> ranges_;  // range -> count; ranges ascend with the numbers
  uint64_t count_ = 0, nan_count_ = 0;
  double min_ = 0, max_ = 0, sum_ = 0;
};

}  // namespace cistern::app
