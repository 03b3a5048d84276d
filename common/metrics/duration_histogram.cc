#include "common/metrics/duration_histogram.h"

#include <algorithm>

#include "common/base/check.h"

namespace cistern {

DurationHistogram::DurationHistogram(absl::Span<const double> bounds) : bounds_(bounds) {
  CISTERN_CHECK(bounds.size() <= kMaxBounds && std::is_sorted(bounds.begin(), bounds.end()));
}

void DurationHistogram::Add(absl::Duration duration) {
  const int64_t nanoseconds = std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration));
  const double seconds = absl::ToDoubleSeconds(absl::Nanoseconds(nanoseconds));
  const size_t bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(static_cast<uint64_t>(nanoseconds), std::memory_order_relaxed);
}

DurationHistogram::Reading DurationHistogram::Read() const {
  Reading reading;
  reading.bounds = bounds_;
  uint64_t count = 0;
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    count += counts_[i].load(std::memory_order_relaxed);
    reading.up_to[i] = count;
  }
  reading.sum_seconds = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
  return reading;
}

}  // namespace cistern
