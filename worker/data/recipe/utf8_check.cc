#include "worker/data/recipe/utf8_check.h"

#include <cstdint>
#include <cstring>

#include "common/base/shown_text.h"

namespace cistern::data {

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
    const size_t bytes = CharacterBytes(text.substr(i));
    if (bytes == 0) return false;
    i += bytes;
  }
  return true;
}

}  // namespace cistern::data
