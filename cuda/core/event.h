// A CUDA event: a point in the order of a stream. Other streams and the host can wait for it, and
// the time between two events can be measured.
//
// On the CPU an op has finished when its call returns, so nothing has to wait.
#pragma once

#include <chrono>
#include <memory>

#include "cuda/core/stream.h"

namespace cistern {

// Threads: one at a time.
class Event {
 public:
  // device: that of the streams that record the event. On a GPU they must all be on one GPU.
  static absl::StatusOr<Event> Create(DeviceKind device);

  // The event completes when all work enqueued on `stream` so far has run. An event that was never
  // recorded counts as complete.
  void Record(Stream& stream);

  // Work that is enqueued on `stream` after this call runs after the event.
  void MakeWait(Stream& stream);

  // The host waits for the event.
  absl::Status Wait();
  // Whether the event has completed, or the error that the stream met before it.
  absl::StatusOr<bool> HasHappened() const;

  // Both events must have completed.
  absl::StatusOr<double> MillisecondsSince(const Event& earlier) const;

 private:
  struct OnGpu;
  struct Delete {
    void operator()(OnGpu* event) const;
  };
  Event() = default;

  std::unique_ptr<OnGpu, Delete> gpu_;
  std::chrono::steady_clock::time_point at_;
};

}  // namespace cistern
