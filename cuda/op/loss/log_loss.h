// Shared by the CPU and GPU losses. Internal to x_cpu.cc and x.cu.
#pragma once

#include <cstddef>

#include "common/base/cross_entropy.h"

namespace cistern::op {

inline constexpr size_t kLossGrain = 256;  // elements per partial sum

// The weight of an element in a mean over `count`; 0 if count is 0.
inline double ShareOf(size_t count) {
  return count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
}

}  // namespace cistern::op
