// Where ops run: a device and an order of execution on it.
//
// On the CPU an op runs before its call returns. On a GPU it is enqueued; errors of a launch stay
// in the stream and status() tells the first, so that ops themselves return nothing. After an error
// nothing more is launched: what was enqueued before it still runs.
#pragma once

#include <memory>
#include <utility>

#include "common/base/status.h"

namespace cistern {

enum class DeviceKind { kCpu, kCuda };

// What the matrix products on a GPU may round their inputs to, for its faster units: float32 keeps
// 24 bits, TF32 11, bfloat16 8, and all three their range. Sums are float32. The CPU computes in
// float32 whatever is allowed.
enum class ProductPrecision { kFloat32, kTf32, kBfloat16 };

class CudaQueue;  // cuda/core/cuda_queue.h; only what CUDA's compiler builds looks inside
struct CudaQueueDelete {
  void operator()(CudaQueue* queue) const;
};

// Threads: one at a time.
class Stream {
 public:
  // A stream of kCuda that was not made by OnGpu has nowhere to run: ops record kUnimplemented.
  explicit Stream(DeviceKind device = DeviceKind::kCpu) : device_(device) {}

  // A new stream of GPU number `gpu` (cuda/core/device.h). kNotFound, with the reason, if there is
  // no such GPU; kFailedPrecondition if it is too old (CheckGpu); kInternal with CUDA's words if it
  // cannot be used.
  static absl::StatusOr<Stream> OnGpu(int gpu);

  DeviceKind device() const { return device_; }
  const absl::Status& status() const { return status_; }
  void Record(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  // For who knows that nothing of what met the error has run: work that was captured (WorkCapture).
  void Forget() { std::exchange(status_, absl::OkStatus()).IgnoreError(); }

  // Waits until everything that was enqueued has run. Returns status(), which then also has what
  // kernels themselves ran into (an address that is none); on a GPU that error names no op, unless
  // the stream waits after each.
  absl::Status Wait();

  // Of the products that are enqueued from now on.
  ProductPrecision product_precision() const { return product_precision_; }
  void set_product_precision(ProductPrecision precision) { product_precision_ = precision; }

  // For finding an error: from now on every launch waits for its end, and is blamed for what it
  // ran into. Slow. On the CPU nothing changes.
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
