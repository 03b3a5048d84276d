#include "common/base/shown_text.h"

#include <cstdint>

#include "absl/strings/escaping.h"

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

// The number of a character, which is whole.
uint32_t CodePointOf(absl::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7Fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) {
    code = code << 6 | (static_cast<uint8_t>(character[i]) & 0x3Fu);
  }
  return code;
}

bool IsVisible(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return !within(0, 0x1F) && !within(0x7F, 0x9F) && code != 0x61C && code != 0x200B &&
         !within(0x200E, 0x200F) && !within(0x2028, 0x202E) && !within(0x2060, 0x206F) &&
         code != 0xFEFF && !within(0xFFF9, 0xFFFB) && !within(0xE0000, 0xE007F);
}

}  // namespace

size_t CharacterBytes(absl::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  const int followers = FollowersOf(first);
  const auto bytes = static_cast<size_t>(followers + 1);
  if (followers < 0 || bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (i == 1 ? !IsSecond(first, byte) : (byte & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

std::string ShownText(absl::string_view text, size_t most) {
  std::string shown;
  for (size_t place = 0; place < text.size();) {
    const size_t bytes = CharacterBytes(text.substr(place));
    const absl::string_view next = text.substr(place, bytes == 0 ? 1 : bytes);
    place += next.size();
    if (place > most) break;
    const bool is_visible = bytes > 0 && IsVisible(CodePointOf(next));
    if (is_visible) {
      shown.append(next.data(), next.size());
    } else {
      shown += absl::CHexEscape(next);
    }
  }
  return shown;
}

}  // namespace cistern
