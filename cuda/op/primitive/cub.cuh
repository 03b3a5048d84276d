// How the GPU builds call CUB's device-wide algorithms; CUB is part of the toolkit. Internal to
// x.cu.
//
// Each call has the form (temporary, bytes, ..., stream). With a null `temporary` it only returns
// the size of the temporary storage. Otherwise it enqueues its kernels, without waiting or
// allocating. The CUB of CUDA 12.0 counts in int.
#pragma once

#include <cub/cub.cuh>

#include <algorithm>
#include <limits>

#include "cuda/op/primitive/launch.cuh"

namespace cistern::op {

// Splits scratch, which is 256-byte aligned, into 256-byte aligned parts. With null scratch it only
// adds up their sizes.
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

// True if `count` fits CUB's counts; otherwise records an error in the stream.
inline bool CubCounts(const char* op, size_t count, Stream& stream) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (count > kMost) {
    stream.Record(absl::OutOfRangeError(
        absl::StrCat(op, ": ", count, " elements, but a GPU sorts at most ", kMost,
                     " at once; use fewer samples per batch or pass")));
  }
  return count <= kMost;
}

// The temporary storage of call(temporary, bytes, stream) in bytes, at least 1, because a null
// pointer would query again.
template <typename Call>
size_t CubBytes(const char* op, Stream& stream, const Call& call) {
  if (!stream.status().ok()) return 0;
  size_t bytes = 0;
  const cudaError_t error = call(nullptr, bytes, stream.queue()->stream());
  if (error != cudaSuccess) stream.Record(CudaStatus(error, op));
  return std::max<size_t>(bytes, 1);
}

// Enqueues call(temporary, bytes, stream). Errors are recorded in the stream, as by Launch.
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
