// A uniform number of double precision from a block of random bits. (UniformFromBits of philox.h
// has single precision.)
#pragma once

#include <cstdint>

#include "common/base/philox.h"

namespace cistern::data {

// In [0, 1), a multiple of 2^-53.
inline double UniformDouble(const PhiloxBlock& block) {
  return static_cast<double>((uint64_t{block.word[0]} << 32 | block.word[1]) >> 11) * 0x1p-53;
}

}  // namespace cistern::data
