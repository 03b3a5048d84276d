// Where buffers lie that are not all needed at the same time.
#pragma once

#include <cstddef>
#include <vector>

namespace cistern {

// A buffer, and the first and last step that needs it.
struct Lifetime {
  size_t floats = 0;
  size_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // by buffer, multiples of 16 floats
  size_t floats = 0;            // of all
};

// Gives each buffer the lowest place that none with an overlapping lifetime occupies, in the order
// in which they begin.
MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers);

}  // namespace cistern
