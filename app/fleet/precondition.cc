#include "app/fleet/precondition.h"

#include "absl/strings/numbers.h"

namespace cistern::app {
namespace {

absl::Status Compare(const char* option, const char* what, const std::string& expected,
                     uint64_t found) {
  if (expected.empty()) return absl::OkStatus();
  uint64_t number = 0;
  if (!absl::SimpleAtoi(expected, &number)) {
    return WithOptions(absl::InvalidArgumentError(
                           absl::StrCat("'", expected, "': expected a whole number, 0 or more")),
                       {option});
  }
  if (number == found) return absl::OkStatus();
  const absl::Status moved = absl::FailedPreconditionError(absl::StrCat(
      "the fleet is at ", what, " ", found, ", not at ", number, "; nothing was changed"));
  return WithFix(WithOptions(moved, {option}),
                 absl::StrCat("see what changed it (cistern status), and repeat with ", found,
                              " if that state is right"));
}

}  // namespace

absl::Status CheckExpectedPass(const ParameterClient& client, const Precondition& expected) {
  return Compare("expect_pass", "pass", expected.pass, client.committed_pass());
}

absl::Status CheckExpected(const ParameterClient& client, const Precondition& expected) {
  CISTERN_RETURN_IF_ERROR(CheckExpectedPass(client, expected));
  if (!expected.commit.empty() && !client.durable()) {
    return WithOptions(
        absl::InvalidArgumentError("these servers keep commits in memory only: expect a "
                                   "pass, not a commit"),
        {"expect_pass"});
  }
  return Compare("expect_commit", "commit", expected.commit, client.manifest().commit());
}

}  // namespace cistern::app
