// The format of the key index and its lookup, shared by all devices. Internal to key_index_cpu.cc
// and key_index.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/hash.h"
#include "cuda/op/key/key_index.h"

namespace cistern::op {

// Prefix length in bits: the smallest, at least 1, with 2^bits >= count.
CISTERN_HOST_DEVICE inline unsigned KeyPrefixBits(size_t count) {
  unsigned bits = 1;
  while (size_t{1} << bits < count) ++bits;
  return bits;
}

CISTERN_HOST_DEVICE inline uint64_t KeyPrefix(uint64_t mixed, unsigned bits) {
  return mixed >> (64 - bits);
}

// The index of `wanted` in `mixed`, or kNoRow.
CISTERN_HOST_DEVICE inline Row FindMixedKey(uint64_t wanted, const uint64_t* mixed, unsigned bits,
                                            const uint32_t* index) {
  const uint64_t prefix = KeyPrefix(wanted, bits);
  uint32_t begin = index[prefix], end = index[prefix + 1];
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    const uint64_t found = mixed[middle];
    if (found == wanted) return middle;
    if (found < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return kNoRow;
}

}  // namespace cistern::op
