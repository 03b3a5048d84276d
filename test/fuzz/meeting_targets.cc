#include "test/fuzz/meeting_targets.h"

#include "common/base/check.h"
#include "worker/client/parameter_client.h"
#include "worker/group/hello.h"

namespace cistern {
namespace {

void RunHello(absl::string_view bytes) {
  const absl::StatusOr<group::Hello> hello = group::ParseHello(bytes);
  if (!hello.ok()) {
    CISTERN_CHECK(absl::IsInvalidArgument(hello.status()));
    return;
  }
  CISTERN_CHECK(group::FormatHello(*hello) == bytes);
}

void RunLeader(absl::string_view bytes) {
  const auto writer = ParameterClient::Writer::Unpack(std::string(bytes));
  if (!writer.ok()) return;
  const auto again = ParameterClient::Writer::Unpack(writer->Pack());
  CISTERN_CHECK(again.ok() && again->term == writer->term && again->secret == writer->secret &&
                again->committed == writer->committed);
}

}  // namespace

const std::vector<FuzzTarget>& MeetingTargets() {
  static const std::vector<FuzzTarget> targets = {{"hello", RunHello}, {"leader", RunLeader}};
  return targets;
}

}  // namespace cistern
