#include "cuda/ramp.h"

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
  Ramp<<<kBlocks, kThreads, 0, stream>>>(first, x, n);
  return cudaGetLastError();
}

}  // namespace cistern
