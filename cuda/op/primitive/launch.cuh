// How the GPU builds of the ops launch kernels. Internal to x.cu.
//
// A launch error names the op. Nothing is launched on a stream that has an error, or for an empty
// grid.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/core/cuda_queue.h"
#include "cuda/op/primitive/op.h"

// Dynamic shared memory, sized by the launch. A macro, so that the tests' emulator can replace it.
#ifndef CISTERN_DYNAMIC_SHARED
#define CISTERN_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

namespace cistern::op {

inline constexpr unsigned kBlockThreads = 256;
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kFullWarp = 0xFFFFFFFF;

__host__ __device__ inline size_t CeilDivide(size_t a, size_t b) {
  return (a + b - 1) / b;
}

// The smallest power of two that is at least n, capped at `most` (a power of two).
__host__ __device__ inline unsigned PowerOfTwo(size_t n, unsigned most) {
  unsigned power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// Enqueues kernel<<<grid, block, shared_bytes>>>(arguments...). An error is recorded in the stream
// as "op: CUDA's error string".
template <typename... Parameters, typename... Arguments>
void Launch(const char* op, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            size_t shared_bytes, Stream& stream, Arguments&&... arguments) {
  if (!stream.status().ok() || grid.x == 0 || grid.y == 0) return;
  constexpr size_t kSharedWithoutAsking = 48 << 10;
  cudaError_t error = cudaSuccess;
  if (shared_bytes > kSharedWithoutAsking) {
    error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes));
  }
  CudaQueue* queue = stream.queue();
  if (error == cudaSuccess) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = queue->stream();
    error = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  }
  if (error == cudaSuccess && queue->waits_after_each_launch()) {
    error = cudaStreamSynchronize(queue->stream());
  }
  if (error != cudaSuccess) stream.Record(CudaStatus(error, op));
}

}  // namespace cistern::op
