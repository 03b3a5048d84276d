// The GPU side of a Stream: the CUDA stream and the state that ops need with it. Internal to the
// files that see CUDA.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "common/base/status.h"
#include "cuda/core/blas.h"

namespace cistern {

// OK, or kInternal: "what: CUDA's error string".
absl::Status CudaStatus(cudaError_t error, const char* what);
// The same for a wait, which reports the error of earlier asynchronous work.
absl::Status WaitStatus(cudaError_t error);

// Threads: one at a time.
class CudaQueue {
 public:
  static absl::StatusOr<std::unique_ptr<CudaQueue>> Create(int gpu, StreamPriority priority);
  ~CudaQueue();
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  int gpu() const { return gpu_; }
  // The stream to enqueue on. CUDA requires the calling thread's current device to be the stream's
  // device, and threads start on GPU 0, so this call sets the current device.
  cudaStream_t stream() const {
    cudaSetDevice(gpu_);
    return stream_;
  }
  int multiprocessors() const { return multiprocessors_; }
  // Whether the stream is being captured. A query of a captured stream invalidates the capture.
  bool IsCaptured() const;
  bool waits_after_each_launch() const { return waits_after_each_launch_; }
  void set_waits_after_each_launch() { waits_after_each_launch_ = true; }

  // Matrix products. The first call loads the library, which takes half a second and 200 MB that a
  // program without products does not pay. kNotFound if this machine does not have the library.
  absl::StatusOr<Blas*> blas();
  // Null before the first product.
  const Blas* blas_if_loaded() const { return blas_.get(); }

 private:
  explicit CudaQueue(int gpu) : gpu_(gpu) {}

  const int gpu_;
  cudaStream_t stream_ = nullptr;
  int multiprocessors_ = 1;
  bool waits_after_each_launch_ = false;
  std::unique_ptr<Blas> blas_;
};

}  // namespace cistern
