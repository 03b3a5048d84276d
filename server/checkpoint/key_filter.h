// A Bloom filter over the keys of a section: tells, without I/O, that a file does not hold a key.
//
// The filter is blocked: a key sets 8 bits, one in each 64-bit word of a single 64-byte line, so a
// test costs one cache miss (Putze, Sanders, Singler 2007). With 12 bits a key it lets .5 % of
// absent keys pass, with 16 bits .1 %. The bytes are part of the file format (docs/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/hash.h"
#include "common/base/types.h"

namespace cistern::server {

// Threads: const methods from any thread.
class KeyFilter {
 public:
  static constexpr size_t kLineBytes = 64;

  // Holds no key.
  KeyFilter() = default;
  // keys: distinct, at least one. bits: per key, at least 1.
  KeyFilter(absl::Span<const Key> keys, uint32_t bits);
  // From the bytes of a file: a multiple of kLineBytes.
  explicit KeyFilter(std::vector<uint64_t> words) : words_(std::move(words)) {}

  // The bytes of a filter for `keys` keys.
  static uint64_t BytesOf(uint64_t keys, uint32_t bits);

  // False: the key was not among those of the filter.
  bool MayHave(Key key) const {
    if (words_.empty()) return false;
    const uint64_t mixed = MixKey(key);
    const uint64_t* line = LineOf(mixed);
    uint64_t bits = BitsOf(mixed), missing = 0;
    for (size_t i = 0; i < kWords; ++i, bits >>= 6) missing |= ~line[i] & Bit(bits);
    return missing == 0;
  }
  void Prefetch(Key key) const {
    if (!words_.empty()) __builtin_prefetch(LineOf(MixKey(key)));
  }

  size_t bytes() const { return words_.size() * sizeof(uint64_t); }
  const std::vector<uint64_t>& words() const { return words_; }

 private:
  static constexpr size_t kWords = kLineBytes / sizeof(uint64_t);

  // The line follows from the high half of the mixed key, the bits from a second mix.
  const uint64_t* LineOf(uint64_t mixed) const {
    const uint64_t lines = words_.size() / kWords;
    return &words_[static_cast<size_t>(static_cast<unsigned __int128>(mixed) * lines >> 64) *
                   kWords];
  }
  static uint64_t BitsOf(uint64_t mixed) { return MixKey(mixed); }
  static uint64_t Bit(uint64_t bits) { return uint64_t{1} << (bits & 63); }

  std::vector<uint64_t> words_;
};

}  // namespace cistern::server
