// The roles of a fleet behind TLS: what the holder of a certificate may do.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern {

enum class Role : uint8_t {
  kServer,  // answers calls, and makes none
  kReader,  // pulls, and asks for the status
  kWorker,  // also trains: claims a term, pushes and commits
  kAdmin,   // also saves, loads, clears, shrinks and scrubs
};

// Whether a caller with role `held` may make a call that needs `needed`.
constexpr bool Permits(Role held, Role needed) {
  return held != Role::kServer && held >= needed;
}

// "reader"
absl::string_view NameOf(Role role);
// kInvalidArgument names the roles that there are.
absl::StatusOr<Role> ParseRole(absl::string_view name);

}  // namespace cistern
