// The rank that owns a key.
#pragma once

#include <cstdint>

#include "common/base/hash.h"
#include "common/base/types.h"

namespace cistern {

// Assigns owners by hash, so that every worker owns about as many keys, whatever the key values.
inline uint32_t OwnerOf(Key key, uint32_t workers) {
  return static_cast<uint32_t>((MixKey(key) >> 32) * workers >> 32);
}

}  // namespace cistern
