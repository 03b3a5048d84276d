// How GPU builds call the device-wide algorithms of CUB, which comes with the toolkit. Internal to
// x.cu.
//
// Each is a function (temporary, bytes, ..., stream): where `temporary` is null it only says how
// many bytes it needs, and otherwise it enqueues its kernels and neither waits nor allocates. The
// CUB of CUDA 12.0 counts in int.
#pragma once

#include <cub/cub.cuh>

#include <algorithm>
#include <limits>

#include "cuda/op/primitive/launch.cuh"

namespace cistern::op {

// Cuts scratch into parts that are 256-byte aligned, as it is itself. With null it only adds up how
// much the parts are.
class ScratchParts {
 public:
  explicit ScratchParts(void* scratch) : scratch_(static_cast<char*>(scratch)) {}

  template <typename T>
  T* Take(size_t count) {
    char* part = scratch_ == nullptr ? nullptr : scratch_ + bytes_;
    bytes_ += CeilDivide(count * sizeof(T), kAlignment) * kAlignment;
    return reinterpret_cast<T*>(part);
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 256;
  char* const scratch_;
  size_t bytes_ = 0;
};

// True if CUB can count to `count`; otherwise the stream has an error.
inline bool CubCounts(const char* op, size_t count, Stream& stream) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (count > kMost) {
    stream.Record(
        absl::OutOfRangeError(absl::StrCat(op, ": ", count, " elements, and a GPU sorts ", kMost,
                                           " at once; take fewer samples at once")));
  }
  return count <= kMost;
}

// The bytes that call(temporary, bytes, stream) needs, at least 1: null asks again.
template <typename Call>
size_t CubBytes(const char* op, Stream& stream, const Call& call) {
  if (!stream.status().ok()) return 0;
  size_t bytes = 0;
  const cudaError_t error = call(nullptr, bytes, stream.queue()->stream());
  if (error != cudaSuccess) stream.Record(CudaStatus(error, op));
  return std::max<size_t>(bytes, 1);
}

// Enqueues call(temporary, bytes, stream). What goes wrong is recorded in the stream, as by Launch.
template <typename Call>
void RunCub(const char* op, void* temporary, size_t bytes, Stream& stream, const Call& call) {
  if (!stream.status().ok()) return;
  CudaQueue* queue = stream.queue();
  cudaError_t error = call(temporary, bytes, queue->stream());
  if (error == cudaSuccess && queue->waits_after_each_launch()) {
    error = cudaStreamSynchronize(queue->stream());
  }
  if (error != cudaSuccess) stream.Record(CudaStatus(error, op));
}

}  // namespace cistern::op
