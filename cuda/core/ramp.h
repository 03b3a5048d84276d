// The kernel of TestGpu: writes a known value to every element.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace cistern {

// Enqueues x[i] = first + i (modulo 2^32) for i < n. x: device memory. Returns the launch's error.
cudaError_t LaunchRamp(uint32_t first, uint32_t* x, size_t n, cudaStream_t stream);

}  // namespace cistern
