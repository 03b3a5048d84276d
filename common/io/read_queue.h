// Reads many pieces of a file at once, because a disk serves many requests as fast as one.
//
// Uses io_uring where the system allows it, else threads: containers often refuse it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern {

// `size` bytes at `offset` of a file, to `out`.
struct ReadRequest {
  uint64_t offset = 0;
  size_t size = 0;
  char* out = nullptr;
};

// Threads: any thread; each call has a ring of its own, which later calls use again.
class ReadQueue {
 public:
  ReadQueue();
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Reads all of `requests`. (*got)[i]: the bytes read for request i; fewer than its size at the
  // end of the file, or if the read failed, which the caller finds out by reading the rest.
  void Read(int fd, absl::Span<const ReadRequest> requests, std::vector<size_t>* got);

 private:
  class Ring;
  std::unique_ptr<Ring> TakeRing();  // null: refused
  void ReadByThreads(int fd, absl::Span<const ReadRequest> requests, std::vector<size_t>* got);

  mutable absl::Mutex mutex_;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Ring>> idle_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ThreadPool> threads_ ABSL_GUARDED_BY(mutex_);  // from the first use on
};

}  // namespace cistern
