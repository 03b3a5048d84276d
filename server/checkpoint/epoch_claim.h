// The contents of a claim file in epoch/: the writer that claimed, and the newest commit then.
//
//   commit 41
//   secret 0f3a5c7e9b1d2f40
//   writer cistern train, process 4711 on host-3
//
// Servers read it after a restart, and those other than server 0 before they follow a claim, so
// that nobody can say that an epoch is his which server 0 has granted to somebody else. A file that
// was cut short, or is empty (older versions wrote no more), is a claim whose writer is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/types.h"

namespace cistern {

struct EpochClaim {
  Epoch epoch = 0;                 // the file's name
  uint64_t commit = 0;             // the newest one when it was made
  std::optional<uint64_t> secret;  // of the writer
  std::string writer;              // for people
};

// Longer files are not read: a claim is made by a server, from a name that it has cut down.
inline constexpr uint64_t kMaxClaimBytes = 4096;

std::string FormatClaim(const EpochClaim& claim);
// What can be read of `text`; a line that is not understood is left out.
EpochClaim ParseClaim(Epoch epoch, absl::string_view text);

}  // namespace cistern
