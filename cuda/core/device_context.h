// What a job computes on: a device, the order of execution on it, and the pool of its memory.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "cuda/core/memory.h"
#include "cuda/core/stream.h"

namespace cistern {

// Must live longer than what takes its memory.
//
// Threads: pool() and NewStream() any; stream() belongs to the thread that computes.
class DeviceContext {
 public:
  // The CPU, with the memory of this machine.
  DeviceContext();
  // The CPU, or GPU number `gpu` with the memory that other programs leave. kNotFound, with the
  // reason, if there is no such GPU. check_ops: its streams wait after each launch
  // (Stream::WaitAfterEachLaunch).
  static absl::StatusOr<std::unique_ptr<DeviceContext>> Open(DeviceKind kind, int gpu = 0,
                                                             bool check_ops = false);

  DeviceKind kind() const { return stream_.device(); }
  Stream& stream() { return stream_; }
  MemoryPool& pool() { return pool_; }
  const MemoryPool& pool() const { return pool_; }
  // One more order of execution, beside stream(): for copies, and for another thread.
  absl::StatusOr<Stream> NewStream() const;

 private:
  DeviceContext(Stream stream, int gpu, uint64_t cap_bytes, bool check_ops);

  const int gpu_;
  const bool check_ops_;
  MemoryPool pool_;
  Stream stream_;  // behind the pool: it is waited for before memory must be back
};

}  // namespace cistern
