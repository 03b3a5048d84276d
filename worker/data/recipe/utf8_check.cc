#include "worker/data/recipe/utf8_check.h"

#include <cstdint>
#include <cstring>

namespace cistern {
namespace {

// The bytes after the first byte of a character; -1 if it cannot be the first.
int FollowersOf(uint8_t first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first <= 0xDF) return 1;
  if (first >= 0xE0 && first <= 0xEF) return 2;
  if (first >= 0xF0 && first <= 0xF4) return 3;
  return -1;
}

// Rules out characters in more bytes than needed, surrogates, and those beyond U+10FFFF.
bool IsSecond(uint8_t first, uint8_t second) {
  const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= least && second <= most;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  for (size_t i = 0; i < text.size();) {
    uint64_t word = 0;
    if (i + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + i, sizeof(word));
      if ((word & kHighBits) == 0) {
        i += sizeof(word);
        continue;
      }
    }
    const auto first = static_cast<uint8_t>(text[i++]);
    const int followers = FollowersOf(first);
    if (followers < 0 || i + static_cast<size_t>(followers) > text.size()) return false;
    for (int k = 0; k < followers; ++k) {
      const auto byte = static_cast<uint8_t>(text[i++]);
      if (k == 0 ? !IsSecond(first, byte) : (byte & 0xC0) != 0x80) return false;
    }
  }
  return true;
}

}  // namespace cistern
