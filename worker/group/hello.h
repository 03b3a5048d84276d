// The hello, the first bytes on a connection between ranks of a process group: the sender's rank
// and the group secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern::group {

struct Hello {
  uint64_t secret = 0;          // the group's (GroupSecret, group_options.h)
  uint32_t rank = 0, size = 0;  // from the sender's GroupOptions
  uint16_t port = 0;            // where the sender listens for higher ranks
};

// The layout: "CISTPEE2", then the secret (8 bytes), rank, size and port (4 each), little-endian.
inline constexpr size_t kHelloBytes = 28;

std::string FormatHello(const Hello& hello);

// Parses untrusted bytes. kInvalidArgument if FormatHello cannot have written them. Secret, rank
// and size are not checked: only the receiver knows the right ones.
absl::StatusOr<Hello> ParseHello(absl::string_view bytes);

// Compares in constant time, so that timing does not reveal how much of a guess is right.
inline bool SameSecret(uint64_t a, uint64_t b) {
  return (a ^ b) == 0;
}

}  // namespace cistern::group
