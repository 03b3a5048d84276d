#include "app/admin/shrink_fleet.h"

#include <memory>

namespace cistern::app {
namespace {

absl::Status Shrink(const ShrinkFleetOptions& options, ParameterClient& client,
                    AmountCounter& counter, std::vector<v1::ShrinkReply>* replies) {
  CISTERN_RETURN_IF_ERROR(CheckExpectedPass(client, options.expected));
  if (!options.dry_run) {
    CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
    CISTERN_RETURN_IF_ERROR(CheckExpected(client, options.expected));
  }
  const auto shrink = [&](size_t rank, ControlPlane& server, uint64_t changes) -> absl::Status {
    v1::ShrinkRequest request;
    *request.mutable_identity() = client.identity();
    request.set_dry_run(options.dry_run);
    request.set_day(static_cast<uint32_t>(options.day));
    request.set_changes(changes);
    CISTERN_RETURN_IF_ERROR(server.Shrink(request, &(*replies)[rank]));
    counter.Done();
    return absl::OkStatus();
  };
  if (!options.dry_run) return client.ChangeInPlace(shrink);
  return client.ForEachServer(
      [&](size_t rank, ControlPlane& server) { return shrink(rank, server, 0); });
}

}  // namespace

absl::StatusOr<std::vector<ShrunkServer>> ShrinkFleet(const ShrinkFleetOptions& options,
                                                      const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckDay(options.day));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(options.fleet));
  ParameterClient& client = fleet->client();
  std::vector<v1::ShrinkReply> replies(client.servers().size());
  AmountCounter counter(calls, "shrinking", "servers");
  counter.Expect(replies.size());
  CISTERN_RETURN_IF_ERROR(WithFleetFix(Shrink(options, client, counter, &replies), options.fleet));
  std::vector<ShrunkServer> shrunk;
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    shrunk.push_back({client.servers()[rank].name, replies[rank].rows(), replies[rank].removed()});
  }
  return shrunk;
}

}  // namespace cistern::app
