// Numbers and strings as JSON, written quickly and exactly.
#pragma once

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cistern::serve {

// Appends a float with nine significant digits, from which the same float is read back. JSON has no
// NaN and no infinity: they become null.
inline void AppendJsonNumber(std::string* text, float value) {
  if (!std::isfinite(value)) {
    text->append("null");
    return;
  }
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::general, 9);
  text->append(digits, end.ptr);
}
inline void AppendJsonNumber(std::string* text, int64_t value) {
  absl::StrAppend(text, value);
}
inline void AppendJsonNumber(std::string* text, uint64_t value) {
  absl::StrAppend(text, value);
}
inline void AppendJsonNumber(std::string* text, uint32_t value) {
  absl::StrAppend(text, value);
}

// Appends "[1,2,3]".
template <class T>
void AppendJsonArray(std::string* text, absl::Span<const T> values) {
  text->push_back('[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text->push_back(',');
    AppendJsonNumber(text, values[i]);
  }
  text->push_back(']');
}

// Appends a string with its quotes; bytes that are not UTF-8 become U+FFFD.
inline void AppendJsonString(std::string* text, absl::string_view value) {
  text->append(nlohmann::json(std::string(value))
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace cistern::serve
