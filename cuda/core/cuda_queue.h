// What a Stream is on a GPU: CUDA's stream, and what ops on it need beside it. Internal to the
// files that see CUDA.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "common/base/status.h"
#include "cuda/core/blas.h"

namespace cistern {

// OK, or kInternal: "what: CUDA's words".
absl::Status CudaStatus(cudaError_t error, const char* what);
// The same of a wait, whose error is that of something which ran before.
absl::Status WaitStatus(cudaError_t error);

// Threads: one at a time.
class CudaQueue {
 public:
  static absl::StatusOr<std::unique_ptr<CudaQueue>> Create(int gpu);
  ~CudaQueue();
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  int gpu() const { return gpu_; }
  // For what is enqueued next. CUDA wants a thread to be on the GPU of the stream that it gives
  // work to, and threads begin on GPU 0: so this brings the calling one there.
  cudaStream_t stream() const {
    cudaSetDevice(gpu_);
    return stream_;
  }
  int multiprocessors() const { return multiprocessors_; }
  bool waits_after_each_launch() const { return waits_after_each_launch_; }
  void set_waits_after_each_launch() { waits_after_each_launch_ = true; }

  // Matrix products. The library is loaded by the first call: it takes half a second and 200 MB,
  // which a program without a product does not pay. kNotFound if this machine has none.
  absl::StatusOr<Blas*> blas();

 private:
  explicit CudaQueue(int gpu) : gpu_(gpu) {}

  const int gpu_;
  cudaStream_t stream_ = nullptr;
  int multiprocessors_ = 1;
  bool waits_after_each_launch_ = false;
  std::unique_ptr<Blas> blas_;
};

}  // namespace cistern
