// Finds text that is not UTF-8. Keys are hashes of bytes, so the same word in Latin-1 and in UTF-8
// has two keys.
#pragma once

#include "absl/strings/string_view.h"

namespace cistern::data {

// Whether `text` is well-formed UTF-8 (RFC 3629).
bool IsUtf8(absl::string_view text);

}  // namespace cistern::data
