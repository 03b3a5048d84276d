#include "cli/session/precondition.h"

#include "absl/strings/numbers.h"
#include "cli/terminal/exit_code.h"

namespace cistern {
namespace {

absl::Status Compare(const char* flag, const char* what, const std::string& expected,
                     uint64_t found) {
  if (expected.empty()) return absl::OkStatus();
  uint64_t number = 0;
  if (!absl::SimpleAtoi(expected, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", expected, ": expected a whole number, 0 or more"));
  }
  if (number == found) return absl::OkStatus();
  return WithFix(
      absl::FailedPreconditionError(absl::StrCat("the fleet is at ", what, " ", found, ", not at ",
                                                 number, "; nothing was changed")),
      absl::StrCat("see what changed it (cistern status), and repeat with ", flag, " ", found,
                   " if that state is right"));
}

}  // namespace

void AddPreconditionFlags(Command& command, Precondition* expected) {
  command.Flag("--expect-pass", &expected->pass,
               {"INT", "Fails unless this is the fleet's committed pass.", "--expect-pass 12"});
  command.Flag("--expect-commit", &expected->commit,
               {"INT", "Fails unless this is the fleet's durable commit.", "--expect-commit 12"});
}

absl::Status CheckExpectedPass(const ParameterClient& client, const Precondition& expected) {
  return Compare("--expect-pass", "pass", expected.pass, client.committed_pass());
}

absl::Status CheckExpected(const ParameterClient& client, const Precondition& expected) {
  CISTERN_RETURN_IF_ERROR(CheckExpectedPass(client, expected));
  if (!expected.commit.empty() && !client.durable()) {
    return WithFix(
        absl::InvalidArgumentError("--expect-commit: these servers keep commits in memory only"),
        "use --expect-pass");
  }
  return Compare("--expect-commit", "commit", expected.commit, client.manifest().commit());
}

}  // namespace cistern
