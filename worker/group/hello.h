// The first bytes of a connection between processes of a group: the sender, and its secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern {

struct Hello {
  uint64_t secret = 0;          // of the group (GroupSecret, peer_group.h)
  uint32_t rank = 0, size = 0;  // as the process was told
  uint16_t port = 0;            // where it listens for higher ranks
};

// "CISTPEE2", then the secret (8 bytes), rank, size and port (4 each), little-endian.
inline constexpr size_t kHelloBytes = 28;

std::string FormatHello(const Hello& hello);

// bytes: anything. kInvalidArgument: not what FormatHello makes. Secret, rank and size may be any:
// only the receiver knows which are right.
absl::StatusOr<Hello> ParseHello(absl::string_view bytes);

// Compares all 64 bits at once, so that its time does not tell how much of a guess is right.
inline bool SameSecret(uint64_t a, uint64_t b) {
  return (a ^ b) == 0;
}

}  // namespace cistern
