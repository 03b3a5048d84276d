// A stream: the device that ops run on and the order in which they run.
//
// On the CPU an op runs before its call returns. On a GPU it is enqueued. Launch errors are
// recorded in the stream, and status() returns the first, so ops themselves return nothing. After
// an error nothing more is launched; work that was enqueued earlier still runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace cistern {

enum class DeviceKind { kCpu, kCuda };

// The precision to which matrix products on a GPU may round their inputs, to use faster units.
// float32 keeps 24 bits, TF32 11 and bfloat16 8; all three have the same range. Sums are float32.
// The CPU always computes in float32.
enum class ProductPrecision { kFloat32, kTf32, kBfloat16 };

// Which kernels a GPU starts first where several streams have some to start: those of a step,
// before those that prepare the next batches and rows.
enum class StreamPriority { kStep, kBackground };

class CudaQueue;  // cuda/core/cuda_queue.h; only the files that see CUDA include it
struct CudaQueueDelete {
  void operator()(CudaQueue* queue) const;
};

// Threads: one at a time.
class Stream {
 public:
  // A kCuda stream that was not created by OnGpu has no GPU: ops record kUnimplemented.
  explicit Stream(DeviceKind device = DeviceKind::kCpu) : device_(device) {}

  // A new stream on GPU `gpu` (cuda/core/device.h). kNotFound, with the reason, if there is no such
  // GPU; kFailedPrecondition if it is too old (CheckGpu); kInternal with CUDA's error string if it
  // cannot be used.
  static absl::StatusOr<Stream> OnGpu(int gpu, StreamPriority priority = StreamPriority::kStep);

  DeviceKind device() const { return device_; }
  const absl::Status& status() const { return status_; }
  void Record(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  // Clears the status. Only for a caller that knows that none of the failed work has run: work in a
  // capture (WorkCapture).
  void Forget() { std::exchange(status_, absl::OkStatus()).IgnoreError(); }

  // Waits until all enqueued work has run. Returns status(), which then includes asynchronous
  // errors of kernels (an illegal address). On a GPU such an error does not name its op unless the
  // stream waits after each launch.
  absl::Status Wait();

  // Applies to products that are enqueued from now on.
  ProductPrecision product_precision() const { return product_precision_; }
  void set_product_precision(ProductPrecision precision) { product_precision_ = precision; }

  // The kernels that the matrix library has chosen for the products so far: by product, text that
  // is the same for the same kernel. Empty on the CPU.
  std::map<std::string, std::string> ProductKernels() const;

  // For debugging: from now on every launch waits until it finishes, so that an error names the op
  // that caused it. Slow. No effect on the CPU.
  void WaitAfterEachLaunch();

  // Null on the CPU.
  CudaQueue* queue() const { return queue_.get(); }

 private:
  DeviceKind device_;
  ProductPrecision product_precision_ = ProductPrecision::kFloat32;
  absl::Status status_;
  std::unique_ptr<CudaQueue, CudaQueueDelete> queue_;
};

}  // namespace cistern
