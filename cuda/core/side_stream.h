// A second order of execution beside a stream, for work that does not need what the stream does in
// the meantime: gathering rows while matrices are multiplied.
#pragma once

#include <utility>

#include "cuda/core/device_context.h"
#include "cuda/core/event.h"

namespace cistern {

// On the CPU both run what they are given at once.
//
// Threads: that of the streams.
class SideStream {
 public:
  static absl::StatusOr<SideStream> Create(const DeviceContext& device) {
    CISTERN_ASSIGN_OR_RETURN(Stream stream, device.NewStream());
    CISTERN_ASSIGN_OR_RETURN(Event forked, Event::Create(device.kind()));
    CISTERN_ASSIGN_OR_RETURN(Event joined, Event::Create(device.kind()));
    return SideStream(std::move(stream), std::move(forked), std::move(joined));
  }

  Stream& stream() { return stream_; }

  // What this is given from now on runs after what `main` was given until now.
  void Fork(Stream& main) {
    forked_.Record(main);
    forked_.LetWait(stream_);
  }
  // What `main` is given from now on runs after what this was given. Errors go with it.
  void Join(Stream& main) {
    joined_.Record(stream_);
    joined_.LetWait(main);
    main.Record(stream_.status());
  }

 private:
  SideStream(Stream stream, Event forked, Event joined)
      : stream_(std::move(stream)), forked_(std::move(forked)), joined_(std::move(joined)) {}

  Stream stream_;
  Event forked_, joined_;
};

}  // namespace cistern
