// Hash functions whose values are part of a file format or of the placement of keys: never change
// one without a new format version.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/host_device.h"
#include "common/base/types.h"

namespace cistern {

// Mixes the bits of a key: one step of splitmix64 (Steele et al. 2014), its constant and its
// finalizer.
//
// Buckets and probe positions use the mixed key, because keys are often small and dense. The shard
// uses the key itself, because the file format defines it so (DESIGN section 4).
CISTERN_HOST_DEVICE inline uint64_t MixKey(Key key) {
  uint64_t x = key + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The inverse of MixKey: undoes its steps from last to first. The factors are the inverses of
// MixKey's factors modulo 2^64.
CISTERN_HOST_DEVICE inline Key UnmixKey(uint64_t mixed) {
  uint64_t x = mixed ^ (mixed >> 31) ^ (mixed >> 62);
  x *= 0x319642b2d24d8ec3ull;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089ull;
  return (x ^ (x >> 30) ^ (x >> 60)) - 0x9e3779b97f4a7c15ull;
}

// 64-bit XXH3 of `bytes`, used for schema, shard-map and cluster identities and for hashed feature
// names. stream_hash.h has it for bytes that arrive piece by piece.
uint64_t HashBytes(const void* data, size_t size);
inline uint64_t HashBytes(const std::string& bytes) {
  return HashBytes(bytes.data(), bytes.size());
}
// HashBytes of 16 bytes: two little-endian numbers.
uint64_t HashPair(uint64_t first, uint64_t second);

}  // namespace cistern
