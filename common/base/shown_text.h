// Text of the outside world as messages show it: UTF-8 as it is, so that people can read their own
// words, and everything else as escapes, so that no terminal obeys it.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace cistern {

// The bytes of the UTF-8 character (RFC 3629) that `text` begins with; 0: it begins with none.
size_t CharacterBytes(absl::string_view text);

// At most `most` bytes of `text`, whole characters only. Escaped as \n, \t, \r or \x1b, byte by
// byte, are what is not UTF-8, control characters (also U+0080 to U+009F, which begin commands of
// terminals), and characters that no one sees: marks that change the direction of the text, line
// separators, spaces without width, tags. Quotes and backslashes stay.
std::string ShownText(absl::string_view text, size_t most = absl::string_view::npos);

}  // namespace cistern
