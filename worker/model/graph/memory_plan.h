// Packs buffers with limited lifetimes into one block of memory.
#pragma once

#include <cstddef>
#include <vector>

namespace cistern::model {

// The size of a buffer, and the first and last point in time at which it is needed.
struct Lifetime {
  size_t floats = 0;
  size_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // by buffer, multiples of 16 floats
  size_t floats = 0;            // size of the whole block
};

// Places the buffers in the order of their first use, each at the lowest offset that no buffer with
// an overlapping lifetime occupies.
MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers);

}  // namespace cistern::model
