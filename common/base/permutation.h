// Random permutations and choices as pure functions of a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/philox.h"

namespace cistern {

// A number in [0, bound): the draw `counter` of the stream. bound > 0. Uniform up to bound / 2^64.
inline uint64_t RandomBelow(uint64_t seed, uint64_t counter, uint64_t stream, uint64_t bound) {
  const PhiloxBlock random = Philox(seed, counter, stream);
  const uint64_t bits = uint64_t{random.word[1]} << 32 | random.word[0];
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

// A random permutation of 0 .. count - 1 (Fisher-Yates).
inline std::vector<size_t> Permutation(uint64_t seed, uint64_t stream, size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t i = count; i > 1; --i) {
    std::swap(places[i - 1], places[static_cast<size_t>(RandomBelow(seed, i, stream, i))]);
  }
  return places;
}

}  // namespace cistern
