#include "server/checkpoint/key_filter.h"

#include <algorithm>

#include "common/base/check.h"

namespace cistern::server {

uint64_t KeyFilter::BytesOf(uint64_t keys, uint32_t bits) {
  const uint64_t line_bits = kLineBytes * 8;
  return std::max<uint64_t>(1, (keys * bits + line_bits - 1) / line_bits) * kLineBytes;
}

KeyFilter::KeyFilter(absl::Span<const Key> keys, uint32_t bits)
    : words_(BytesOf(keys.size(), bits) / sizeof(uint64_t)) {
  CISTERN_CHECK(!keys.empty() && bits > 0);
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) Prefetch(keys[i + kAhead]);
    const uint64_t mixed = MixKey(keys[i]);
    uint64_t* line = const_cast<uint64_t*>(LineOf(mixed));
    uint64_t chosen = BitsOf(mixed);
    for (size_t w = 0; w < kWords; ++w, chosen >>= 6) line[w] |= Bit(chosen);
  }
}

}  // namespace cistern::server
