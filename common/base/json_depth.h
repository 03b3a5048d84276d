// How deep JSON is nested, told from its text before anything is built of it. Trees of the JSON
// library are copied and compared by functions that call themselves: a text of 100,000 brackets
// would end the process.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace cistern {

// More than any file of ours, or HugeCTR's, has.
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
