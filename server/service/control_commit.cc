// ControlService: a pass from its begin to its commit, recovery, and changes in place.
#include "common/base/log.h"
#include "common/value/step_clock.h"
#include "server/service/control_service.h"
#include "server/table/table_lifecycle.h"

namespace cistern::server {

absl::Status ControlService::InPass(const v1::Identity& identity, v1::PassReply* reply,
                                    const std::function<absl::Status()>& verb) {
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckWriter(identity));
  CISTERN_RETURN_IF_ERROR(verb());
  reply->set_committed_pass(state_->stage.committed());
  reply->set_boot(state_->boot);
  return absl::OkStatus();
}

absl::Status ControlService::BeginPass(const v1::PassRequest& request, v1::PassReply* reply) {
  return InPass(request.identity(), reply, [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(state_->stage.CheckChanges(request.changes()));
    if (request.pass() > kMaxPass) {
      return absl::InvalidArgumentError(
          absl::StrCat("pass ", request.pass(), " is above the limit of ", kMaxPass));
    }
    return state_->stage.Begin(request.pass(), std::max(1u, request.worker_num()),
                               request.replica());
  });
}

absl::Status ControlService::SealPass(const v1::SealPassRequest& request, v1::PassReply* reply) {
  return InPass(request.identity(), reply, [&] {
    return state_->stage.Seal(request.pass(), request.worker(), request.push_count());
  });
}

absl::Status ControlService::AbortPass(const v1::PassRequest& request, v1::PassReply* reply) {
  return InPass(request.identity(), reply, [&] { return state_->stage.Abort(request.pass()); });
}

absl::Status ControlService::PreparePass(const v1::PreparePassRequest& request,
                                         v1::PreparePassReply* reply) {
  if (request.durable() && state_->stage.durable() == nullptr) {
    return absl::FailedPreconditionError(
        "a durable commit was requested, but this server keeps commits in memory only; "
        "connect again");
  }
  CommitState::Prepared prepared;
  {
    absl::ReaderMutexLock lock(&state_->tables_mutex);
    CISTERN_RETURN_IF_ERROR(state_->CheckWriter(request.identity()));
    CISTERN_RETURN_IF_ERROR(state_->stage.CheckChanges(request.changes()));
    CISTERN_RETURN_IF_ERROR(state_->stage.Prepare(
        request.pass(), {request.identity().epoch(), request.durable(), request.days()},
        &prepared));
  }
  reply->set_staged_rows(prepared.rows);
  reply->set_evicted_rows(prepared.removed.evicted);
  reply->set_expired_rows(prepared.removed.expired);
  if (!request.durable()) return absl::OkStatus();
  // Without the lock, so that a claim need not wait. A repeated call goes on waiting.
  constexpr absl::Duration kPatience = absl::Seconds(2);
  CISTERN_RETURN_IF_ERROR(state_->stage.durable()->AwaitCopy(prepared.part, kPatience));
  *reply->mutable_prepared() = std::move(prepared.part);
  return absl::OkStatus();
}

absl::Status ControlService::Decide(const v1::DecideRequest& request, v1::DecideReply* reply) {
  DurableState* const durable = state_->stage.durable();
  if (durable == nullptr) {
    return absl::FailedPreconditionError("this server keeps commits in memory only");
  }
  // Held until the end, so that a claim waits and no decision of an older term follows it.
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckWriter(request.identity()));
  const v1::Manifest& manifest = request.manifest();
  if (manifest.epoch() != request.identity().epoch()) {
    return absl::InvalidArgumentError("the term of the manifest is not the caller's");
  }
  CISTERN_ASSIGN_OR_RETURN(
      const ParsedManifest decided,
      durable->Decide(manifest, state_->store, state_->stage.IsPrepared(manifest.pass())));
  LogInfo(absl::StrCat("commit ", manifest.commit(), " decided: pass ", manifest.pass(), ", term ",
                       manifest.epoch(), ", ", manifest.files_size(), " files"));
  reply->set_self_xxh3(decided.self_xxh3);
  reply->set_created(decided.manifest.created());
  return absl::OkStatus();
}

absl::Status ControlService::StoreManifest(const v1::StoreManifestRequest& request,
                                           v1::StoreManifestReply* /*reply*/) {
  // No term: also a claim that this server does not know yet is preceded by this call. What server
  // 0 has decided stays decided.
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  if (state_->stage.durable() == nullptr) {
    return absl::FailedPreconditionError("this server keeps commits in memory only");
  }
  return state_->stage.durable()->StoreManifest(request.manifest(), request.self_xxh3());
}

absl::Status ControlService::CommitPass(const v1::CommitPassRequest& request,
                                        v1::PassReply* reply) {
  CISTERN_RETURN_IF_ERROR(CheckClock(request.clock()));
  absl::MutexLock job(&state_->job_mutex);
  bool adopted = false;
  const PassId before = state_->stage.committed();
  CISTERN_RETURN_IF_ERROR(InPass(request.identity(), reply, [&] {
    return state_->stage.Commit(request.pass(), request.commit(), request.clock(), &adopted);
  }));
  if (adopted && state_->stage.committed() != before) state_->counters.CountCommit();
  if (adopted) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(Recover());
  reply->set_committed_pass(state_->stage.committed());
  return absl::OkStatus();
}

absl::Status ControlService::CheckClock(const v1::StepClock& clock) const {
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  return AddContext(CheckStepClock(clock, state_->store.schema()), "clock of the pass");
}

absl::Status ControlService::Recover() {
  return Replacing([] { return absl::OkStatus(); },
                   [&]() -> absl::Status {
                     CISTERN_RETURN_IF_ERROR(state_->stage.Recover());
                     if (!state_->cache.is_filled()) state_->FillCache("the first load");
                     LogInfo(absl::StrCat("recovered pass ", state_->stage.committed()));
                     return absl::OkStatus();
                   });
}

absl::Status ControlService::CatchUp() {
  if (state_->stage.durable() == nullptr || state_->stage.durable()->dirty())
    return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const bool behind, state_->stage.durable()->IsBehind());
  if (!behind) return absl::OkStatus();
  // The commit may be on its way to this server; the second of the two callers finds it done.
  absl::MutexLock job(&state_->job_mutex);
  CISTERN_ASSIGN_OR_RETURN(const bool still, state_->stage.durable()->IsBehind());
  if (!still || state_->stage.open() != 0) return absl::OkStatus();
  return Recover();
}

absl::Status ControlService::GetManifest(const v1::GetManifestRequest& request,
                                         v1::GetManifestReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  const ParsedManifest newest =
      state_->stage.durable() == nullptr ? ParsedManifest() : state_->stage.durable()->manifest();
  if (newest.manifest.commit() == 0) return absl::NotFoundError("nothing is committed on disk");
  *reply->mutable_manifest() = newest.manifest;
  reply->set_self_xxh3(newest.self_xxh3);
  return absl::OkStatus();
}

absl::Status ControlService::Scrub(const v1::ScrubRequest& request, v1::ScrubReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  if (state_->stage.durable() == nullptr) {
    return absl::FailedPreconditionError(
        "this server keeps commits in memory only, so there is no digest to compare with");
  }
  absl::MutexLock job(&state_->job_mutex);
  uint64_t files = 0, bytes = 0;
  CISTERN_RETURN_IF_ERROR(
      state_->stage.durable()->Scrub(state_->store, request.files(), &files, &bytes));
  for (const auto& table : state_->store.sparse_tables()) {
    reply->set_rows(reply->rows() + table->counts().rows);
  }
  reply->set_files(files);
  reply->set_bytes(bytes);
  return absl::OkStatus();
}

absl::Status ControlService::ChangeInPlace(const v1::Identity& identity, uint64_t changes,
                                           const std::function<absl::Status()>& change) {
  absl::MutexLock job(&state_->job_mutex);
  return Replacing(
      [&]() -> absl::Status {
        if (state_->stage.open() != 0) {
          return absl::FailedPreconditionError(
              absl::StrCat("pass ", state_->stage.open(), " is open; wait until it is committed"));
        }
        CISTERN_RETURN_IF_ERROR(
            state_->guard.Check(IdentityOf(identity), state_->store.schema_hash()));
        CISTERN_RETURN_IF_ERROR(state_->lease.Check(identity.secret()));
        return state_->stage.CheckChanges(changes);
      },
      change);
}

absl::Status ControlService::Shrink(const v1::ShrinkRequest& request, v1::ShrinkReply* reply) {
  const auto shrink = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(CheckDay(state_->store, request.day()));
    if (!request.dry_run()) state_->stage.Changed(request.changes(), nullptr);
    for (const auto& table : state_->store.sparse_tables()) {
      CISTERN_ASSIGN_OR_RETURN(const ShrinkTotals totals,
                               ShrinkTable(*table, request.day(), request.dry_run(), state_->pool));
      reply->set_rows(reply->rows() + totals.rows);
      reply->set_removed(reply->removed() + totals.removed);
    }
    return absl::OkStatus();
  };
  if (!request.dry_run()) return ChangeInPlace(request.identity(), request.changes(), shrink);
  // Counts committed rows, as a save does: commits wait, an open pass continues.
  absl::MutexLock job(&state_->job_mutex);
  {
    absl::ReaderMutexLock lock(&state_->tables_mutex);
    CISTERN_RETURN_IF_ERROR(state_->Check(IdentityOf(request.identity())));
    CISTERN_RETURN_IF_ERROR(state_->stage.CheckCommitted());
  }
  return shrink();
}

absl::Status ControlService::UpdateAfterSave(const v1::UpdateAfterSaveRequest& request,
                                             v1::PassReply* reply) {
  return ChangeInPlace(request.identity(), request.changes(), [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(CheckDay(state_->store, request.day()));
    std::vector<std::vector<std::vector<Key>>> changed;
    for (const auto& table : state_->store.sparse_tables()) {
      server::UpdateAfterSave(*table, request.mode(), request.day(), state_->pool,
                              &changed.emplace_back());
    }
    // Rows in files change when they are read: the next commit writes all of them.
    state_->stage.Changed(request.changes(), state_->store.tiered() ? nullptr : &changed);
    reply->set_committed_pass(state_->stage.committed());
    return absl::OkStatus();
  });
}

}  // namespace cistern::server
