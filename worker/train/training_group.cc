#include "worker/train/training_group.h"

#include "common/base/secret.h"

namespace cistern {
namespace {

// The size limit of worker 0's state: a manifest is far smaller, and a protocol buffer of 2 GiB
// cannot be parsed.
constexpr size_t kMaxStateBytes = size_t{1} << 30;

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingGroup>> TrainingGroup::Form(const group::GroupPlace& place,
                                                                   std::chrono::milliseconds limit,
                                                                   DeviceContext& device) {
  auto group = std::make_unique<TrainingGroup>();
  CISTERN_ASSIGN_OR_RETURN(group->trainers, group::ProcessGroup::Form(place, limit));
  CISTERN_ASSIGN_OR_RETURN(group->stagers, group->trainers->Another());
  CISTERN_ASSIGN_OR_RETURN(group->committers, group->trainers->Another());
  CISTERN_ASSIGN_OR_RETURN(group->steps, group->trainers->OnDevice(device));
  return group;
}

void TrainingGroup::Abort(const absl::Status& why) {
  trainers->Abort(why);
  steps->Abort(why);
  stagers->Interrupt(why);
  committers->Interrupt(why);
}

group::GroupSecret SecretOfRun(ParameterClient& client, uint32_t rank, const std::string& peers) {
  group::GroupSecret secret;
  if (rank == 0) {
    secret.value = NewSecret();
    secret.leave = [&client, peers](uint64_t value) { return client.StoreRunSecret(peers, value); };
    return secret;
  }
  secret.fetch = [&client, peers]() -> absl::StatusOr<uint64_t> {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t value, client.RunSecret(peers));
    if (value != 0) return value;
    return WithOptions(
        absl::NotFoundError(absl::StrCat("it has stored no secret for ", peers, " on server ",
                                         client.servers()[0].name,
                                         ": it has not started, or was given other peers or "
                                         "servers; give all workers the same")),
        {"peers", "servers"});
  };
  return secret;
}

absl::Status FollowWriter(group::ProcessGroup& group, ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const std::string packed,
                           group.FromLeader(group.leads() ? client.writer().Pack() : ""));
  if (group.leads()) return absl::OkStatus();
  if (packed.size() > kMaxStateBytes) return absl::InternalError("worker 0 sent an overlong state");
  CISTERN_ASSIGN_OR_RETURN(const ParameterClient::Writer writer,
                           ParameterClient::Writer::Unpack(packed));
  client.Follow(writer);
  return absl::OkStatus();
}

absl::Status CheckFleetOfWriter(ParameterClient& client) {
  const ServerLink& first = client.servers()[0];
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(first.control->Hello({}, &hello));
  const uint64_t writer = client.identity().epoch(), here = hello.identity().epoch();
  if (here >= writer) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat("server ", first.name, " is at term ", here,
                                              ", but worker 0 writes at term ", writer,
                                              ": the server belongs to another fleet or has lost "
                                              "its state; give all workers the same servers")),
      {"servers"});
}

// The message is three letters, y or n, followed by the position.
absl::StatusOr<TrainStart> StartOfLeader(group::ProcessGroup& group, const TrainStart& own) {
  std::string said;
  for (const bool flag : {own.after_commit, own.write_pass_line, own.is_over}) {
    said += flag ? 'y' : 'n';
  }
  CISTERN_ASSIGN_OR_RETURN(said, group.FromLeader(said + FormatPosition(own.position)));
  if (said.size() < 3) return absl::InternalError("worker 0 sent no start point");
  TrainStart start;
  CISTERN_ASSIGN_OR_RETURN(start.position, ParsePosition(said.substr(3)));
  start.after_commit = said[0] == 'y';
  start.write_pass_line = said[1] == 'y';
  start.is_over = said[2] == 'y';
  return start;
}

}  // namespace cistern
