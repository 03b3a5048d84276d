// Keys from text: the same hash wherever text becomes a key (docs/formats.md, "Hashed key").
#pragma once

#include "absl/strings/string_view.h"
#include "common/base/hash.h"
#include "common/base/types.h"

namespace cistern::data {

// XXH3 of `text`, such as "C1=68fd1e64", reduced to 63 (wide) or 32 bits; never the reserved key.
inline Key HashedKeyOf(absl::string_view text, bool wide) {
  uint64_t hash = HashBytes(text.data(), text.size());
  hash = wide ? hash & kReservedKey64 : (hash ^ (hash >> 32)) & kReservedKey32;
  // Maps the reserved key to the key below it.
  return hash == (wide ? kReservedKey64 : kReservedKey32) ? hash - 1 : hash;
}

}  // namespace cistern::data
