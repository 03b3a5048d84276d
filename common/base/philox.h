// Philox4x32-10, a counter-based random generator: a pure function of (seed, counter), so a value
// does not depend on order, threads, servers or device.
//
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/host_device.h"

namespace cistern {

struct PhiloxBlock {
  uint32_t word[4];
};

// Returns the 128 random bits at position (counter, stream) of the sequence `seed`.
CISTERN_HOST_DEVICE inline PhiloxBlock Philox(uint64_t seed, uint64_t counter, uint64_t stream) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  PhiloxBlock x = {{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                    static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * x.word[0];
    const uint64_t p1 = 0xCD9E8D57ull * x.word[2];
    x = {{static_cast<uint32_t>(p1 >> 32) ^ x.word[1] ^ key0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ x.word[3] ^ key1, static_cast<uint32_t>(p0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

// Maps 32 random bits to [0, 1): 24 bits, so every result is an exact float.
CISTERN_HOST_DEVICE inline float UniformFromBits(uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f);
}

// Maps two words to one standard normal deviate (Box and Muller, 1958), computed in double.
CISTERN_HOST_DEVICE inline float NormalFromBits(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 1.0) * (1.0 / 4294967296.0);  // (0, 1]
  const double v = static_cast<double>(b) * (1.0 / 4294967296.0);
  return static_cast<float>(sqrt(-2.0 * log(u)) * cos(6.283185307179586477 * v));
}

}  // namespace cistern
