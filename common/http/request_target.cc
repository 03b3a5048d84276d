#include "common/http/request_target.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace cistern {

size_t UnescapeTarget(void*, MHD_Connection*, char* text) {
  char* to = text;
  for (const char* from = text; *from != '\0'; ++to) {
    uint32_t byte = 0;
    const bool is_escape = from[0] == '%' && absl::ascii_isxdigit(from[1]) &&
                           absl::ascii_isxdigit(from[2]) &&
                           absl::SimpleHexAtoi(absl::string_view(from + 1, 2), &byte) && byte != 0;
    *to = is_escape ? static_cast<char>(byte) : *from;
    from += is_escape ? 3 : 1;
  }
  *to = '\0';
  return static_cast<size_t>(to - text);
}

absl::string_view WithoutAuthority(absl::string_view path) {
  if (!absl::StartsWithIgnoreCase(path, "http://") &&
      !absl::StartsWithIgnoreCase(path, "https://")) {
    return path;
  }
  path.remove_prefix(path.find("//") + 2);
  const size_t end = path.find('/');
  return end == absl::string_view::npos ? "/" : path.substr(end);
}

}  // namespace cistern
