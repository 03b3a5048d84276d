// Powers that have the same bits on every machine.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace cistern {

// x^k by squaring, in double because rounding errors are squared too.
CISTERN_HOST_DEVICE inline float PowerOf(double x, uint64_t k) {
  double power = 1.0;
  for (; k > 0; k >>= 1) {
    if ((k & 1) != 0) power *= x;
    x *= x;
  }
  return static_cast<float>(power);
}

}  // namespace cistern
