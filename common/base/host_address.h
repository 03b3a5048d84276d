// Addresses as users write them: "host:port", "10.0.0.1:7700", "[::1]:7700".
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// kInvalidArgument, as in "'[::1]' has no port": no port from 1 to 65535, no host, an IPv6 address
// without brackets, brackets around anything else, or a character that no host name has.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// "[::1]" and "::1" give "::1"; other hosts stay as they are.
std::string WithoutBrackets(absl::string_view host);

// The inverse of ParseHostPort: an IPv6 address gets brackets.
std::string HostPortText(absl::string_view host, const absl::AlphaNum& port);

// Why the name service does not know this host, "Name or service not known"; "" if it does.
std::string WhyUnknown(const std::string& host);

// Whether a name service could know this host: letters, digits, '-', '_' and dots, but not only
// digits and dots.
bool MayBeHostName(absl::string_view host);

// Whether no other machine reaches this host, with or without brackets: 127.0.0.0/8, ::1 in any of
// its spellings, the same as IPv4-mapped addresses, or "localhost". Other names are not looked up.
bool IsLoopback(absl::string_view host);

}  // namespace cistern
