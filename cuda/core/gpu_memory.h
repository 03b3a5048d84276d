// Memory and copies of a GPU, below MemoryPool. Internal to cuda/; a build without CUDA answers
// kUnimplemented.
#pragma once

#include "cuda/core/memory.h"

namespace cistern::gpu {

// Zeroed.
absl::StatusOr<void*> Allocate(int gpu, MemoryPlace place, size_t bytes);
void Free(int gpu, MemoryPlace place, void* data);

// Bytes of the device that no program has.
absl::StatusOr<uint64_t> FreeBytes(int gpu);

// Enqueue on a stream of a GPU; either side may be of the host. Errors are recorded in the stream.
void Copy(const void* from, void* to, size_t bytes, Stream& stream);
void Zero(void* data, size_t bytes, Stream& stream);

}  // namespace cistern::gpu
