// Work that a GPU is given as one CUDA graph, so that its kernels follow each other without waiting
// for the host, one launch a step instead of one a kernel.
//
// Every run is captured anew, and the graph of the run before is updated with it: what changes from
// step to step (pointers, sizes, step sizes) are arguments of kernels, as without a graph. Only a
// run of other kernels, or of another number, builds another graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cuda/core/stream.h"

namespace cistern {

// On the CPU, on a stream that waits after each launch, and in the first run (in which libraries
// load their kernels) work is enqueued as it comes; so it is for good after a graph could not be
// had, and status() says why.
//
// Threads: one at a time.
class WorkCapture {
 public:
  WorkCapture();
  ~WorkCapture();
  WorkCapture(const WorkCapture&) = delete;
  WorkCapture& operator=(const WorkCapture&) = delete;

  // Enqueues on `stream` what `enqueue` gives it, and other streams that it lets wait for `stream`
  // and `stream` for them (event.h). enqueue must not wait, take memory, or copy from memory that
  // is not pinned, and must do the same again if it is called again: so it is where something
  // fails, which may fail in a capture alone. beside: the other stream, if there is one.
  void Run(Stream& stream, const std::function<void()>& enqueue, Stream* beside = nullptr);

  uint64_t graphs_built() const { return graphs_built_; }
  uint64_t graphs_launched() const { return graphs_launched_; }
  const absl::Status& status() const { return status_; }

 private:
  struct OnGpu;

  // False: nothing was enqueued.
  bool RunAsGraph(Stream& stream, const std::function<void()>& enqueue, Stream* beside);

  std::unique_ptr<OnGpu> gpu_;
  bool is_warm_ = false;
  uint64_t graphs_built_ = 0, graphs_launched_ = 0;
  absl::Status status_;
};

}  // namespace cistern
