#include "common/base/hash.h"

#include <xxhash.h>

namespace cistern {

uint64_t HashBytes(const void* data, size_t size) {
  return XXH3_64bits(data, size);
}

}  // namespace cistern
