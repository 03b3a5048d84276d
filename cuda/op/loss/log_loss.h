// What the losses of the CPU and of a GPU share. Internal to x_cpu.cc and x.cu.
#pragma once

#include <cstddef>

#include "common/base/cross_entropy.h"

namespace cistern::op {

inline constexpr size_t kLossGrain = 256;  // elements whose sum is one partial result

// What an element counts in a mean over `count`; 0 of none.
inline double ShareOf(size_t count) {
  return count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
}

}  // namespace cistern::op
