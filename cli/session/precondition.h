// Compare and set: a command that changes a fleet says where it believes the fleet is, and is
// refused where somebody has moved it since.
#pragma once

#include <string>

#include "cli/terminal/command_line.h"
#include "worker/client/parameter_client.h"

namespace cistern {

struct Precondition {
  std::string pass, commit;  // numbers; empty: any
};

// --expect-pass and --expect-commit.
void AddPreconditionFlags(Command& command, Precondition* expected);

// OK if the fleet is at that pass. To be asked before an epoch is claimed, so that a refused
// command disturbs nobody. kFailedPrecondition: it is at another one; kInvalidArgument: no number.
absl::Status CheckExpectedPass(const ParameterClient& client, const Precondition& expected);
// The same for pass and durable commit, to be asked after ClaimEpoch: from then on nobody else can
// move the fleet.
absl::Status CheckExpected(const ParameterClient& client, const Precondition& expected);

}  // namespace cistern
