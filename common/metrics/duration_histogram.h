// A histogram of durations that many threads add to.
//
//   DurationHistogram seconds(kCallSeconds);
//   seconds.Add(absl::Now() - begin);
//
// A reader sees every duration in exactly one bucket. The sum may lag behind the buckets by the
// durations that are being added at that moment.
//
// Threads: any thread; Add costs two uncontended atomic additions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace cistern {

// The upper bounds of buckets, in seconds: requests of a serving process (from a tenth of a
// millisecond, the cost of the protocol alone), and calls of a server, some of which take minutes.
inline constexpr double kRequestSeconds[] = {
    0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
inline constexpr double kCallSeconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                          0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                          1,      2.5,     10,     60};

class DurationHistogram {
 public:
  static constexpr size_t kMaxBounds = 16;

  // bounds: ascending, in seconds, at most kMaxBounds, of static lifetime. A duration belongs to
  // the first bucket whose bound is not below it, or to one above all bounds.
  explicit DurationHistogram(absl::Span<const double> bounds = kCallSeconds);

  // A negative duration counts as zero.
  void Add(absl::Duration duration);

  struct Reading {
    absl::Span<const double> bounds;
    std::array<uint64_t, kMaxBounds + 1> up_to{};  // [bounds.size() + 1], cumulative
    double sum_seconds = 0;
    uint64_t count() const { return up_to[bounds.size()]; }
  };
  Reading Read() const;

 private:
  const absl::Span<const double> bounds_;
  std::array<std::atomic<uint64_t>, kMaxBounds + 1> counts_{};
  std::atomic<uint64_t> nanoseconds_{0};
};

}  // namespace cistern
