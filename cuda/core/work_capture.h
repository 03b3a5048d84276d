// Captures the work of a step as one CUDA graph, so that its kernels run back to back without
// waiting for the host: one launch per step instead of one per kernel.
//
// Every run is captured again and updates the executable graph of the previous run
// (cudaGraphExecUpdate). What changes from step to step (pointers, sizes, step sizes) are kernel
// arguments, as without a graph. A run with other kernels, or another number of them, builds a new
// graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cuda/core/event.h"
#include "cuda/core/stream.h"

namespace cistern {

// Work is enqueued directly, without a graph, on the CPU, on a stream that waits after each launch,
// and in the first run (in which libraries load their kernels). After a graph could not be captured
// or built, all later runs are direct too, and status() holds the reason.
//
// Threads: one at a time.
class WorkCapture {
 public:
  WorkCapture();
  ~WorkCapture();
  WorkCapture(const WorkCapture&) = delete;
  WorkCapture& operator=(const WorkCapture&) = delete;

  // Runs `enqueue`, which enqueues work on `stream` and on streams that fork from it and join it
  // again through events (event.h). `enqueue` must not wait, allocate, or copy from pageable
  // memory. It must be repeatable: if the capture fails, it runs a second time, directly.
  // beside: the other stream, if there is one. begin: recorded on `stream` directly before the work
  // enters it, so the time of a capture is not part of the work's; null: not wanted.
  void Run(Stream& stream, const std::function<void()>& enqueue, Stream* beside = nullptr,
           Event* begin = nullptr);

  uint64_t graphs_built() const { return graphs_built_; }
  uint64_t graphs_launched() const { return graphs_launched_; }
  const absl::Status& status() const { return status_; }

 private:
  struct OnGpu;

  // False: nothing was enqueued.
  bool RunAsGraph(Stream& stream, const std::function<void()>& enqueue, Stream* beside,
                  Event* begin);

  std::unique_ptr<OnGpu> gpu_;
  bool is_warm_ = false;
  uint64_t graphs_built_ = 0, graphs_launched_ = 0;
  absl::Status status_;
};

}  // namespace cistern
