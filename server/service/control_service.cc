#include "server/service/control_service.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/version.h"
#include "common/value/schema.h"
#include "common/value/step_clock.h"
#include "common/value/value_text.h"
#include "common/wire/call_peer.h"

namespace cistern::server {
ControlService::ControlService(NodeState* state, FileSystem* files, std::string data_dir)
    : state_(state),
      data_dir_(std::move(data_dir)),
      files_(files, data_dir_),
      start_(std::chrono::steady_clock::now()) {}

absl::Status ControlService::Hello(const v1::HelloRequest& request, v1::HelloReply* reply) {
  CISTERN_RETURN_IF_ERROR(CatchUp());
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckTables());
  *reply->mutable_identity() = state_->guard.Own(state_->store.schema_hash());
  reply->set_cluster(state_->guard.cluster());
  reply->set_rank(state_->rank);
  reply->set_server_num(state_->store.shard_map().server_num());
  reply->set_shard_num(state_->store.shard_map().shard_num());
  *reply->mutable_schema() = state_->store.schema();
  reply->set_committed_pass(state_->stage.committed());
  reply->set_version(kVersion);
  reply->set_data_dir(data_dir_);
  reply->set_durable(state_->stage.durable() != nullptr);
  *reply->mutable_clock() = state_->store.clock();
  *reply->mutable_days() = state_->store.days();
  if (reply->durable()) reply->set_commit(state_->stage.durable()->commit());
  if (reply->durable() && state_->stage.durable()->local()) {
    reply->set_local_state(true);
    CISTERN_ASSIGN_OR_RETURN(const uint64_t newest, state_->stage.durable()->NewestManifest());
    reply->set_newest_manifest(newest);
  }
  reply->set_rows_in_files(state_->store.tiered());
  reply->set_writer_at_work(state_->lease.WriterAtWork({request.identity().secret()}));
  return absl::OkStatus();
}

absl::Status ControlService::Grant(const TermClaim& claim) {
  if (state_->stage.durable() == nullptr) return absl::OkStatus();
  const ClaimBook claims = state_->stage.durable()->claims();
  // With a local state, a server may have missed claims, and so may have server 0 if its folder was
  // restored from a copy.
  const bool local = state_->stage.durable()->local();
  const Term max_step = local ? IdentityGuard::kMaxClaimStep : 1;
  if (state_->rank > 0) return local ? claims.Record(claim, max_step) : claims.CheckGranted(claim);
  // The claim is on disk before any server acts on it.
  const absl::Status granted = claims.Grant(claim, max_step);
  if (granted.ok()) return granted;
  // This claim or an earlier one may have reached the disk and nothing more: its number is used up.
  CISTERN_ASSIGN_OR_RETURN(const TermClaim newest, claims.Newest());
  absl::MutexLock lock(&state_->tables_mutex);
  if (!state_->guard.TakeGranted(newest.epoch).ok()) return granted;
  state_->lease.Restore(newest.secret, newest.writer);
  if (!absl::IsAlreadyExists(granted)) return granted;
  return absl::UnavailableError(absl::StrCat(
      "term ", newest.epoch, " was claimed by a call that was interrupted; claim the next one"));
}

absl::Status ControlService::ClaimEpoch(const v1::ClaimEpochRequest& request,
                                        v1::PassReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  const TermClaim claim = {.epoch = request.identity().epoch(),
                           .commit = 0,  // set by the state folder
                           .secret = request.identity().secret(),
                           .writer = PlainWriterName(request.writer())};
  // A repeated call: its first answer was lost, or the server was restarted in between.
  const bool again = claim.secret != uint64_t{0} && state_->guard.epoch() == claim.epoch &&
                     state_->lease.Check(*claim.secret).ok();
  if (!again) {
    const uint64_t own[] = {*claim.secret, request.held_secret()};
    const auto check_free = [&] {
      return request.take_over() ? absl::OkStatus() : state_->lease.CheckFree(own);
    };
    CISTERN_RETURN_IF_ERROR(check_free());
    CISTERN_RETURN_IF_ERROR(Grant(claim));
    {
      absl::MutexLock lock(&state_->tables_mutex);
      CISTERN_RETURN_IF_ERROR(state_->CheckTables());
      CISTERN_RETURN_IF_ERROR(check_free());  // another writer may have been faster
      CISTERN_RETURN_IF_ERROR(state_->stage.durable() != nullptr
                                  ? state_->guard.TakeGranted(claim.epoch)
                                  : state_->guard.Claim(claim.epoch));
      state_->lease.Take(*claim.secret, claim.writer);
      CISTERN_RETURN_IF_ERROR(state_->stage.Abort(state_->stage.open()));
    }
    LogInfo(absl::StrCat("term ", claim.epoch, " claimed by ", claim.writer, " at ",
                         CallPeer::Current(), request.take_over() ? ", which takes over" : ""));
  }
  if (state_->stage.durable() != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(const bool wanted, state_->stage.durable()->NeedsRecovery());
    if (wanted) {
      absl::MutexLock job(&state_->job_mutex);
      CISTERN_RETURN_IF_ERROR(Recover());
    }
  }
  reply->set_committed_pass(state_->stage.committed());
  reply->set_boot(state_->boot);
  return absl::OkStatus();
}

absl::Status ControlService::Meet(const v1::MeetRequest& request, v1::MeetReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  if (request.secret() != 0) {
    CISTERN_RETURN_IF_ERROR(state_->run_secrets.Leave(request.address(), request.secret()));
  }
  reply->set_secret(state_->run_secrets.Find(request.address()));
  return absl::OkStatus();
}

absl::Status ControlService::CreateTables(const v1::CreateTablesRequest& request,
                                          v1::CreateTablesReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  {
    // The usual case changes nothing and must not wait for a save.
    absl::ReaderMutexLock lock(&state_->tables_mutex);
    CISTERN_RETURN_IF_ERROR(state_->CheckTables());
    const uint64_t hash = state_->store.schema_hash();
    if (hash != 0) {
      reply->set_schema_hash(hash);
      if (hash == SchemaHash(request.schema())) return absl::OkStatus();
      return WithKind(
          absl::FailedPreconditionError(absl::StrCat(
              "schema differs: ", SchemaDifference(state_->store.schema(), request.schema()),
              " (here: this server's tables; there: your model file). This cluster was created for "
              "another model: use that model's file and settings, or start a fresh cluster")),
          ErrorKind::kOtherSchema);
    }
  }
  absl::MutexLock job(&state_->job_mutex);
  absl::MutexLock lock(&state_->tables_mutex);
  // The caller may know of a claim that has not reached this server yet: tables come before claims.
  CISTERN_RETURN_IF_ERROR(
      state_->guard.CheckTerm(std::min<Term>(request.identity().epoch(), state_->guard.epoch())));
  CISTERN_RETURN_IF_ERROR(state_->store.Create(request.schema()));
  reply->set_schema_hash(state_->store.schema_hash());
  return absl::OkStatus();
}

absl::Status ControlService::Replacing(const std::function<absl::Status()>& check,
                                       const std::function<absl::Status()>& replace) {
  // Clears `replacing` at the end of a scope, even if memory runs out inside.
  class Scope {
   public:
    explicit Scope(NodeState* state) : state_(state) {}
    ~Scope() {
      absl::MutexLock lock(&state_->tables_mutex);
      state_->replacing = false;
    }

   private:
    NodeState* const state_;
  };
  {
    absl::MutexLock lock(&state_->tables_mutex);
    CISTERN_RETURN_IF_ERROR(check());
    state_->replacing = true;
  }
  const Scope scope(state_);
  return replace();
}

absl::Status ControlService::Clear(const v1::ClearRequest& request, v1::PassReply* reply) {
  if (request.pass() > kMaxPass) {
    return absl::InvalidArgumentError(
        absl::StrCat("pass ", request.pass(), " is above the limit of ", kMaxPass));
  }
  absl::MutexLock job(&state_->job_mutex);
  reply->set_committed_pass(request.pass());
  return Replacing(
      [&]() -> absl::Status {
        CISTERN_RETURN_IF_ERROR(
            state_->guard.Check(IdentityOf(request.identity()), state_->store.schema_hash()));
        CISTERN_RETURN_IF_ERROR(state_->lease.Check(request.identity().secret()));
        // A repeated call finds the change made, and makes it again.
        const bool again = request.changes() < UINT64_MAX &&
                           state_->stage.CheckChanges(request.changes() + 1).ok();
        return again ? absl::OkStatus() : state_->stage.CheckChanges(request.changes());
      },
      [&] {
        state_->stage.Changed(request.changes(), nullptr);
        state_->store.Clear();
        state_->cache.Drop();
        state_->stage.Reset(request.pass());
        return absl::OkStatus();
      });
}

absl::Status ControlService::GetRow(const v1::GetRowRequest& request, v1::GetRowReply* reply) {
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->Check(IdentityOf(request.identity())));
  CISTERN_RETURN_IF_ERROR(state_->stage.CheckCommitted());
  CISTERN_ASSIGN_OR_RETURN(const SparseTable* table, state_->store.sparse(request.table()));
  const Key key = request.key();
  CISTERN_RETURN_IF_ERROR(table->CheckKeys(absl::MakeConstSpan(&key, 1)));
  reply->set_shard(state_->store.shard_map().shard(key));
  const ValueLayout& layout = table->layout();
  std::vector<float> value(layout.full_floats());
  bool has_embedx = false;
  CISTERN_ASSIGN_OR_RETURN(const bool found, table->Find(key, value.data(), &has_embedx));
  reply->set_found(found);
  if (!reply->found()) return absl::OkStatus();
  for (const std::string& name : layout.FieldNames(has_embedx)) reply->add_field_names(name);
  for (const double field : layout.FieldValues(value.data(), has_embedx)) reply->add_fields(field);
  AppendValueLine(layout, key, value.data(), has_embedx, reply->mutable_text());
  return absl::OkStatus();
}

}  // namespace cistern::server
