#include "cuda/core/ramp.h"

#include <cuda_runtime.h>

namespace cistern {
namespace {

__global__ void Ramp(uint32_t first, uint32_t* x, size_t n) {
  const size_t threads = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) {
    x[i] = first + static_cast<uint32_t>(i);
  }
}

}  // namespace

cudaError_t LaunchRamp(uint32_t first, uint32_t* x, size_t n, cudaStream_t stream) {
  constexpr unsigned kBlocks = 256, kThreads = 256;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, Ramp, first, x, n);
}

}  // namespace cistern
