// Allocation and copies on a GPU, the layer below MemoryPool. Internal to cuda/; a build without
// CUDA returns kUnimplemented.
#pragma once

#include "cuda/core/memory.h"

namespace cistern::gpu {

// fill: kAny leaves the contents of device memory undefined; pinned memory is zeroed, which also
// touches its pages.
absl::StatusOr<void*> Allocate(int gpu, MemoryPlace place, size_t bytes, MemoryFill fill);
void Free(int gpu, MemoryPlace place, void* data);

// Free bytes of device memory.
absl::StatusOr<uint64_t> FreeBytes(int gpu);

// Enqueue on a GPU's stream; either side may be host memory. Errors are recorded in the stream.
void Copy(const void* from, void* to, size_t bytes, Stream& stream);
void Zero(void* data, size_t bytes, Stream& stream);

}  // namespace cistern::gpu
