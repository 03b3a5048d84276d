// Nesting depth of a JSON text, found before the text is parsed. The JSON library copies and
// compares its trees recursively, so a text of 100,000 brackets would overflow the stack and kill
// the process.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace cistern {

// Deeper than any file of ours or of HugeCTR's.
inline constexpr size_t kMaxJsonDepth = 100;

// Threads: any.
inline size_t JsonDepth(absl::string_view text) {
  size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\';
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace cistern
