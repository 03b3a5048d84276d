// The device that a job computes on, its main stream and its memory pool.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "cuda/core/memory.h"
#include "cuda/core/stream.h"

namespace cistern {

// Must outlive everything that holds its memory.
//
// Threads: pool() and NewStream() from any thread; stream() only from the compute thread.
class DeviceContext {
 public:
  // The CPU, with the memory of this machine.
  DeviceContext();
  // The CPU, or GPU `gpu` with the memory that other programs leave free. kNotFound, with the
  // reason, if there is no such GPU. check_ops: its streams synchronize after each launch
  // (Stream::WaitAfterEachLaunch).
  static absl::StatusOr<std::unique_ptr<DeviceContext>> Open(DeviceKind kind, int gpu = 0,
                                                             bool check_ops = false);

  DeviceKind kind() const { return stream_.device(); }
  Stream& stream() { return stream_; }
  MemoryPool& pool() { return pool_; }
  const MemoryPool& pool() const { return pool_; }
  // An additional stream besides stream(), whose priority is kStep: for a part of the step, or for
  // what runs beside steps.
  absl::StatusOr<Stream> NewStream(StreamPriority priority) const;

 private:
  DeviceContext(Stream stream, int gpu, uint64_t cap_bytes, bool check_ops);

  const int gpu_;
  const bool check_ops_;
  MemoryPool pool_;
  // After pool_, so that it is destroyed first: it waits for its work before memory goes back.
  Stream stream_;
};

}  // namespace cistern
