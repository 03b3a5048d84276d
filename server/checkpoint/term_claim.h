// The contents of a claim file in epoch/: the writer that claimed, and the newest commit at that
// time.
//
//   commit 41
//   secret 0f3a5c7e9b1d2f40
//   writer cistern train, process 4711 on host-3
//
// A server reads the file after a restart. A server other than server 0 also reads it before it
// follows a claim, so that no writer can pass off as its own a term that server 0 granted to
// another writer. A file that was cut short, or that is empty (older versions wrote nothing more),
// is a claim by an unknown writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/types.h"

namespace cistern::server {

struct TermClaim {
  Term term = 0;                   // the file's name
  uint64_t commit = 0;             // the newest commit at the time of the claim
  std::optional<uint64_t> secret;  // the writer's
  std::string writer;              // for people
};

// Longer files are not read. Servers write shorter ones: they truncate the writer's name.
inline constexpr uint64_t kMaxClaimBytes = 4096;

std::string FormatClaim(const TermClaim& claim);
// Parses what it can of `text`, and ignores lines that it does not understand.
TermClaim ParseClaim(Term term, absl::string_view text);

}  // namespace cistern::server
