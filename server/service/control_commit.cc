// ControlService: Prepare, Decide, Commit, recovery, and changes in place.
#include "common/base/log.h"
#include "common/value/step_clock.h"
#include "server/service/control_service.h"
#include "server/table/table_lifecycle.h"

namespace cistern {

absl::Status ControlService::PreparePass(const v1::PreparePassRequest& request,
                                         v1::PreparePassReply* reply) {
  DurableState* durable = state_->durable.get();
  if (request.durable() && durable == nullptr) {
    return absl::FailedPreconditionError(
        "a durable commit was requested, but this server keeps commits in memory only; "
        "connect again");
  }
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckWriter(request.identity()));
  CISTERN_RETURN_IF_ERROR(state_->CheckChanges(request.changes()));
  uint64_t rows = 0;
  v1::PreparedPart part;
  PassStage::Look write;
  if (durable != nullptr) {
    write = [&](const Staging& staging) {
      return durable->Prepare(state_->store, staging, request.identity().epoch(), request.durable(),
                              &part);
    };
  }
  // A repeated call gets the lost answer; `again` is asked once the first call is over.
  const auto again = [&] { return request.durable() && durable->prepared().files().empty(); };
  CISTERN_RETURN_IF_ERROR(state_->stage.Prepare(request.pass(), &rows, write, again));
  reply->set_staged_rows(rows);
  if (!request.durable()) return absl::OkStatus();
  *reply->mutable_prepared() = part.files().empty() ? durable->prepared() : std::move(part);
  if (reply->prepared().files().empty()) {
    return absl::UnavailableError("the pass is being prepared by a repeated call; retry soon");
  }
  return absl::OkStatus();
}

absl::Status ControlService::Decide(const v1::DecideRequest& request, v1::DecideReply* reply) {
  if (state_->durable == nullptr) {
    return absl::FailedPreconditionError("this server keeps commits in memory only");
  }
  // Held until the end, so that a claim waits and no decision of an older term follows it.
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckWriter(request.identity()));
  if (request.manifest().epoch() != request.identity().epoch()) {
    return absl::InvalidArgumentError("the manifest has another term than the call");
  }
  const v1::Manifest& manifest = request.manifest();
  CISTERN_ASSIGN_OR_RETURN(
      const uint64_t hash,
      state_->durable->Decide(manifest, state_->store, state_->stage.IsPrepared(manifest.pass())));
  LogInfo(absl::StrCat("commit ", manifest.commit(), " decided: pass ", manifest.pass(), ", term ",
                       manifest.epoch(), ", ", manifest.files_size(), " files"));
  reply->set_self_xxh3(hash);
  return absl::OkStatus();
}

absl::Status ControlService::CommitPass(const v1::CommitPassRequest& request,
                                        v1::PassReply* reply) {
  CISTERN_RETURN_IF_ERROR(CheckClock(request.clock()));
  absl::MutexLock job(&state_->job_mutex);
  if (request.commit() == 0 || state_->durable == nullptr) {
    return InPass(request.identity(), reply, [&] {
      return state_->stage.Commit(request.pass(), [&](const Staging& staging) {
        if (state_->durable != nullptr) state_->durable->Adopted(staging, 0);
        state_->store.set_clock(request.clock());
      });
    });
  }
  bool adopted = false;
  CISTERN_RETURN_IF_ERROR(InPass(request.identity(), reply, [&]() -> absl::Status {
    if (state_->durable->commit() >= request.commit()) {
      adopted = true;  // an earlier call did it
      return absl::OkStatus();
    }
    CISTERN_ASSIGN_OR_RETURN(const bool mine, state_->durable->CanAdopt(request.commit()));
    adopted = mine && state_->stage.IsPrepared(request.pass());
    if (!adopted) return absl::OkStatus();
    return state_->stage.Commit(request.pass(), [&](const Staging& staging) {
      state_->durable->Adopted(staging, request.commit());
      state_->store.set_clock(request.clock());
    });
  }));
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
                     CISTERN_ASSIGN_OR_RETURN(const PassId pass,
                                              state_->durable->Recover(state_->store));
                     state_->stage.Recovered(pass);
                     if (!state_->cache.is_filled()) state_->FillCache("the first load");
                     LogInfo(absl::StrCat("recovered pass ", pass));
                     return absl::OkStatus();
                   });
}

absl::Status ControlService::CatchUp() {
  if (state_->durable == nullptr || state_->durable->dirty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const bool behind, state_->durable->IsBehind());
  if (!behind) return absl::OkStatus();
  // The commit may be on its way to this server; the second of the two callers finds it done.
  absl::MutexLock job(&state_->job_mutex);
  CISTERN_ASSIGN_OR_RETURN(const bool still, state_->durable->IsBehind());
  if (!still || state_->stage.open() != 0) return absl::OkStatus();
  return Recover();
}

absl::Status ControlService::GetManifest(const v1::GetManifestRequest& request,
                                         v1::GetManifestReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  const ParsedManifest newest =
      state_->durable == nullptr ? ParsedManifest() : state_->durable->manifest();
  if (newest.manifest.commit() == 0) return absl::NotFoundError("nothing is committed on disk");
  *reply->mutable_manifest() = newest.manifest;
  reply->set_self_xxh3(newest.self_xxh3);
  return absl::OkStatus();
}

absl::Status ControlService::Scrub(const v1::ScrubRequest& request, v1::ScrubReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  if (state_->durable == nullptr) {
    return absl::FailedPreconditionError(
        "this server keeps commits in memory only, so there is no digest to compare with");
  }
  absl::MutexLock job(&state_->job_mutex);
  uint64_t files = 0, bytes = 0;
  CISTERN_RETURN_IF_ERROR(state_->durable->Scrub(state_->store, request.files(), &files, &bytes));
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
        return state_->CheckChanges(changes);
      },
      change);
}

absl::Status ControlService::Shrink(const v1::ShrinkRequest& request, v1::ShrinkReply* reply) {
  const auto shrink = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(CheckDay(state_->store, request.day()));
    if (!request.dry_run() && state_->durable != nullptr)
      state_->durable->Changed(request.changes(), nullptr);
    for (const auto& table : state_->store.sparse_tables()) {
      const ShrinkTotals totals =
          ShrinkTable(*table, request.day(), request.dry_run(), state_->pool);
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
    CISTERN_RETURN_IF_ERROR(state_->CheckCommitted());
  }
  return shrink();
}

absl::Status ControlService::UpdateAfterSave(const v1::UpdateAfterSaveRequest& request,
                                             v1::PassReply* reply) {
  return ChangeInPlace(request.identity(), request.changes(), [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(CheckDay(state_->store, request.day()));
    std::vector<std::vector<std::vector<Key>>> changed;
    for (const auto& table : state_->store.sparse_tables()) {
      cistern::UpdateAfterSave(*table, request.mode(), request.day(), state_->pool,
                               &changed.emplace_back());
    }
    if (state_->durable != nullptr) state_->durable->Changed(request.changes(), &changed);
    reply->set_committed_pass(state_->stage.committed());
    return absl::OkStatus();
  });
}

}  // namespace cistern
