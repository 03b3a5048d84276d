#include "common/base/stream_hash.h"

#define XXH_INLINE_ALL  // see hash.cc
#include <xxhash.h>

namespace cistern {

struct StreamHash::State {
  XXH3_state_t xxh3;
};

StreamHash::StreamHash(uint64_t seed) : state_(std::make_unique<State>()) {
  XXH3_64bits_reset_withSeed(&state_->xxh3, seed);
}

StreamHash::~StreamHash() = default;

void StreamHash::Add(const void* data, size_t size) {
  XXH3_64bits_update(&state_->xxh3, data, size);
}

uint64_t StreamHash::value() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

}  // namespace cistern
