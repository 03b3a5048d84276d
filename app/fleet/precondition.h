// Compare-and-set for jobs that change a fleet: the caller names the pass or commit that it
// expects, and fails if the fleet is at another one.
#pragma once

#include <string>

#include "common/base/status.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

struct Precondition {
  std::string pass, commit;  // numbers; empty: any
};

// OK if the fleet is at the expected pass. Call this before ClaimTerm, so that a caller that
// fails the check does not fence the current writer. kFailedPrecondition: the fleet is at another
// pass. kInvalidArgument: an invalid number.
absl::Status CheckExpectedPass(const ParameterClient& client, const Precondition& expected);
// Checks pass and durable commit. Call this after ClaimTerm, when no other writer can change the
// fleet any more.
absl::Status CheckExpected(const ParameterClient& client, const Precondition& expected);

}  // namespace cistern::app
