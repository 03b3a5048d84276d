#include "app/admin/scrub_fleet.h"

namespace cistern::app {
namespace {

constexpr char kScrubFix[] =
    "corrupt memory: restart that server, which recovers from its files; a corrupt file: restore "
    "it from a copy, or let the server write a new base before you restart it (see cistern verify "
    "DATA_DIR)";

}  // namespace

absl::Status ScrubResult::outcome() const {
  absl::Status worst;
  for (const ScrubbedServer& one : servers) {
    if (one.state.ok() || absl::IsDataLoss(worst)) continue;
    if (worst.ok() || absl::IsDataLoss(one.state)) worst = AddContext(one.state, one.server);
  }
  return absl::IsDataLoss(worst) ? WithFix(WithKind(worst, ErrorKind::kBadCheckpoint), kScrubFix)
                                 : worst;
}

absl::StatusOr<ScrubResult> ScrubServers(ParameterClient& client, bool files,
                                         const JobCalls& calls) {
  ScrubResult result;
  for (const ServerLink& server : client.servers()) result.servers.push_back({server.name, {}, {}});
  AmountCounter counter(calls, "scrubbing", "servers");
  counter.Expect(result.servers.size());
  CISTERN_RETURN_IF_ERROR(client.ForEachServer([&](size_t rank, ControlPlane& server) {
    v1::ScrubRequest request;
    *request.mutable_identity() = client.identity();
    request.set_files(files);
    ScrubbedServer& one = result.servers[rank];
    one.state = server.Scrub(request, &one.checked);
    counter.Done();
    return absl::OkStatus();
  }));
  return result;
}

}  // namespace cistern::app
