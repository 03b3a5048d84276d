// The target of a request, its "/path?query", as libmicrohttpd reads it.
#pragma once

#include <microhttpd.h>

#include <cstddef>

#include "absl/strings/string_view.h"

namespace cistern {

// For MHD_OPTION_UNESCAPE_CALLBACK: replaces each "%41" of `text` by its byte, in place, and
// returns the new length. "%00" stays as it is, because the library passes paths on as C strings:
// decoded, it would hide what follows it.
size_t UnescapeTarget(void*, MHD_Connection*, char* text);

// "http://host:8000/v2" -> "/v2", as proxies send it (RFC 9112, 3.2.2); "/v2" stays.
absl::string_view WithoutAuthority(absl::string_view path);

}  // namespace cistern
