// ParameterClient: verbs that change the tables in place rather than through a pass.
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

// The attempts at a change that server restarts interrupt.
constexpr int kMaxTries = 5;

bool WasLost(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

}  // namespace

absl::Status ParameterClient::Clear(PassId pass) {
  v1::ClearRequest request;
  *request.mutable_identity() = identity();
  request.set_pass(pass);
  request.set_changes(changes_++);
  CISTERN_RETURN_IF_ERROR(Repeat([&](size_t, ControlPlane& server) {
    v1::PassReply reply;
    return server.Clear(request, &reply);
  }));
  committed_ = pass;
  clock_.Clear();
  days_.Clear();
  open_ = 0;
  return absl::OkStatus();
}

absl::Status ParameterClient::Load(const v1::LoadRequest& what, v1::LoadReply* reply) {
  v1::LoadRequest request = what;
  *request.mutable_identity() = identity();
  request.set_changes(changes_++);
  std::vector<v1::LoadReply> replies(servers_.size());
  CISTERN_RETURN_IF_ERROR(ForEachServer(
      [&](size_t rank, ControlPlane& server) { return server.Load(request, &replies[rank]); }));
  *reply = replies[0];  // every server reports the same omitted tables
  for (size_t rank = 1; rank < replies.size(); ++rank) {
    reply->set_rows(reply->rows() + replies[rank].rows());
  }
  committed_ = reply->committed_pass();
  clock_.Clear();
  days_ = reply->days();
  open_ = 0;
  // Loading may have created the tables.
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(servers_[0].control->Hello({}, &hello));
  CISTERN_RETURN_IF_ERROR(SetSchema(hello.schema()));
  if (!durable_) return absl::OkStatus();
  // The commit carries no position: none matches these rows. No row was seen on its day, so it has
  // that of the model's last pass.
  CISTERN_RETURN_IF_ERROR(BeginPass());
  if (!reply->days().days().empty()) open_days_ = reply->days();
  return CommitPass(CommitOptions());
}

absl::Status ParameterClient::CommitChange() {
  if (!durable_) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(BeginPass());
  CommitOptions commit;
  commit.worker_state = manifest_.worker();
  commit.clock = clock_;
  return CommitPass(commit);
}

absl::Status ParameterClient::ChangeOnce(const Change& call) {
  const uint64_t changes = changes_++;
  CISTERN_RETURN_IF_ERROR(ForEachServer(
      [&](size_t rank, ControlPlane& server) { return call(rank, server, changes); }));
  return CommitChange();
}

absl::Status ParameterClient::ChangeInPlace(const Change& call) {
  const uint64_t commit = manifest_.commit(), previous = manifest_xxh3_;
  absl::Status changed = ChangeOnce(call);
  for (int tries = 1; durable_ && WasLost(changed) && tries < kMaxTries; ++tries) {
    const uint64_t epoch = epoch_;
    CISTERN_RETURN_IF_ERROR(AddContext(ClaimTerm(), std::string(changed.message())));
    if (manifest_.commit() == commit + 1 && manifest_.previous() == previous &&
        manifest_.epoch() == epoch) {
      return absl::OkStatus();  // the commit was decided; only the reply was lost
    }
    if (manifest_.commit() != commit) {
      return absl::FailedPreconditionError(
          absl::StrCat("another writer has committed meanwhile: the newest commit is ",
                       manifest_.commit(), ", it was ", commit, "; the tables were not changed"));
    }
    changed = ChangeOnce(call);
  }
  return changed;
}

}  // namespace cistern
