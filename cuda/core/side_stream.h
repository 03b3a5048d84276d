// A second stream for work that is independent of the main stream for a while: gathering rows while
// matrices are multiplied.
#pragma once

#include <utility>

#include "cuda/core/device_context.h"
#include "cuda/core/event.h"

namespace cistern {

// On the CPU both run their work at once.
//
// Threads: the thread of the main stream.
class SideStream {
 public:
  static absl::StatusOr<SideStream> Create(const DeviceContext& device) {
    CISTERN_ASSIGN_OR_RETURN(Stream stream, device.NewStream(StreamPriority::kStep));
    CISTERN_ASSIGN_OR_RETURN(Event forked, Event::Create(device.kind()));
    CISTERN_ASSIGN_OR_RETURN(Event joined, Event::Create(device.kind()));
    return SideStream(std::move(stream), std::move(forked), std::move(joined));
  }

  Stream& stream() { return stream_; }

  // Work enqueued here from now on runs after the work enqueued on `main` so far.
  void Fork(Stream& main) {
    forked_.Record(main);
    forked_.MakeWait(stream_);
  }
  // Work enqueued on `main` from now on runs after the work enqueued here so far. Errors propagate
  // to `main`.
  void Join(Stream& main) {
    joined_.Record(stream_);
    joined_.MakeWait(main);
    main.Record(stream_.status());
  }

 private:
  SideStream(Stream stream, Event forked, Event joined)
      : stream_(std::move(stream)), forked_(std::move(forked)), joined_(std::move(joined)) {}

  Stream stream_;
  Event forked_, joined_;
};

}  // namespace cistern
