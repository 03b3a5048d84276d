// Which of several workers a key belongs to.
#pragma once

#include <cstdint>

#include "common/base/hash.h"
#include "common/base/types.h"

namespace cistern {

// By its hash: as many keys for each, whatever the keys are.
inline uint32_t OwnerOf(Key key, uint32_t workers) {
  return static_cast<uint32_t>((MixKey(key) >> 32) * workers >> 32);
}

}  // namespace cistern
