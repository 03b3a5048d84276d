#include "common/base/hash.h"

#include <bit>

// Compiled here for the processor that this build is for. The library's copy has no AVX2, and a
// call to it costs more than hashing 16 bytes.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cistern {

uint64_t HashBytes(const void* data, size_t size) {
  return XXH3_64bits(data, size);
}

uint64_t HashPair(uint64_t first, uint64_t second) {
  static_assert(std::endian::native == std::endian::little);
  const uint64_t bytes[2] = {first, second};
  return XXH3_64bits(bytes, sizeof(bytes));
}

}  // namespace cistern
