// A place in the order of a stream: other streams and the host can wait for it, and the time
// between two can be had.
//
// On the CPU an op has run when its call returns, so there is nothing to wait for.
#pragma once

#include <chrono>
#include <memory>

#include "cuda/core/stream.h"

namespace cistern {

// Threads: one at a time.
class Event {
 public:
  // On a GPU: that of the streams which record it, which must be of one.
  static absl::StatusOr<Event> Create(DeviceKind device);

  // The event happens when all that `stream` was given until now has run. One that was never
  // recorded has happened.
  void Record(Stream& stream);

  // What `stream` is given from now on runs after the event.
  void LetWait(Stream& stream);

  // The host waits for the event.
  absl::Status Wait();
  // Whether it has happened; an error that the stream ran into by then.
  absl::StatusOr<bool> HasHappened() const;

  // Both have happened.
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
