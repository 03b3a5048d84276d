#include "server/service/control_service.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/version.h"
#include "common/metrics/process_figures.h"
#include "common/value/schema.h"
#include "common/value/step_clock.h"
#include "common/value/value_text.h"
#include "common/wire/call_peer.h"
#include "server/table/table_lifecycle.h"

namespace cistern::server {
namespace {

absl::Status FillTable(const SparseTable& table, bool digest, v1::TableStats* stats) {
  const SparseTable::Counts counts = table.counts();
  stats->set_name(table.spec().name());
  stats->set_rows(counts.rows);
  stats->set_embedx_rows(counts.embedx_rows);
  stats->set_value_bytes(counts.value_bytes);
  stats->set_memory_bytes(counts.memory_bytes);
  if (table.tiered()) {
    stats->set_hot_rows(counts.hot_rows);
    stats->set_cold_index_bytes(counts.cold_index_bytes);
  }
  stats->set_evicted_rows(table.removed().evicted);
  stats->set_expired_rows(table.removed().expired);
  if (!digest) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const uint64_t sum, table.Digest());
  stats->set_digest(sum);
  return absl::OkStatus();
}

void FillTable(const DenseTable& table, bool digest, v1::TableStats* stats) {
  const uint64_t rows = table.written() ? table.range().end - table.range().begin : 0;
  const uint64_t bytes = rows * table.columns() * sizeof(float);
  stats->set_name(table.spec().name());
  stats->set_rows(rows);
  stats->set_value_bytes(bytes);
  stats->set_memory_bytes(bytes);
  if (digest) stats->set_digest(table.Digest());
}

absl::Status FillTables(const TableStore& store, bool digest, v1::StatsReply* reply) {
  for (const auto& table : store.sparse_tables()) {
    CISTERN_RETURN_IF_ERROR(FillTable(*table, digest, reply->add_tables()));
  }
  for (const auto& table : store.dense_tables()) {
    FillTable(*table, digest, reply->add_dense_tables());
  }
  return absl::OkStatus();
}

}  // namespace

ControlService::ControlService(NodeState* state, FileSystem* files, std::string data_dir)
    : state_(state),
      files_(state, files, std::move(data_dir)),
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
  reply->set_data_dir(files_.data_dir());
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
  if (!state_->guard.TakeGranted(newest.term).ok()) return granted;
  state_->lease.Restore(newest.secret, newest.writer);
  if (!absl::IsAlreadyExists(granted)) return granted;
  return absl::UnavailableError(absl::StrCat(
      "term ", newest.term, " was claimed by a call that was interrupted; claim the next one"));
}

absl::Status ControlService::ClaimEpoch(const v1::ClaimEpochRequest& request,
                                        v1::PassReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  const TermClaim claim = {.term = request.identity().epoch(),
                           .commit = 0,  // set by the state folder
                           .secret = request.identity().secret(),
                           .writer = PlainWriterName(request.writer())};
  // A repeated call: its first answer was lost, or the server was restarted in between.
  const bool again = claim.secret != uint64_t{0} && state_->guard.term() == claim.term &&
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
                                  ? state_->guard.TakeGranted(claim.term)
                                  : state_->guard.Claim(claim.term));
      state_->lease.Take(*claim.secret, claim.writer);
      CISTERN_RETURN_IF_ERROR(state_->stage.Abort(state_->stage.open()));
    }
    LogInfo(absl::StrCat("term ", claim.term, " claimed by ", claim.writer, " at ",
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
      state_->guard.CheckTerm(std::min<Term>(request.identity().epoch(), state_->guard.term())));
  CISTERN_RETURN_IF_ERROR(state_->store.Create(request.schema()));
  reply->set_schema_hash(state_->store.schema_hash());
  return absl::OkStatus();
}

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
  // Waits without the lock, so that it does not hold up a claim. If this call times out, the client
  // repeats it, and the next call waits on.
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
  {
    absl::ReaderMutexLock lock(&state_->tables_mutex);
    CISTERN_RETURN_IF_ERROR(
        AddContext(CheckStepClock(request.clock(), state_->store.schema()), "clock of the pass"));
  }
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

absl::Status ControlService::Recover() {
  return state_->Replace([] { return absl::OkStatus(); },
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
  return state_->Replace(
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

absl::Status ControlService::Clear(const v1::ClearRequest& request, v1::PassReply* reply) {
  if (request.pass() > kMaxPass) {
    return absl::InvalidArgumentError(
        absl::StrCat("pass ", request.pass(), " is above the limit of ", kMaxPass));
  }
  absl::MutexLock job(&state_->job_mutex);
  reply->set_committed_pass(request.pass());
  return state_->Replace(
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

absl::Status ControlService::Save(const v1::SaveRequest& request, v1::SaveReply* reply) {
  return files_.Save(request, reply);
}

absl::Status ControlService::Load(const v1::LoadRequest& request, v1::LoadReply* reply) {
  return files_.Load(request, reply);
}

absl::Status ControlService::ReadState(const v1::ReadStateRequest& request,
                                       v1::ReadStateReply* reply) {
  return files_.ReadState(request, reply);
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

absl::Status ControlService::Stats(const v1::StatsRequest& request, v1::StatsReply* reply) {
  // Reads only, so a caller of any term and any model may ask.
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  reply->set_rank(state_->rank);
  reply->set_committed_pass(state_->stage.committed());
  reply->set_open_pass(state_->stage.open());
  reply->set_staged_bytes(state_->stage.staged_bytes());
  reply->set_resident_bytes(ReadProcessFigures().resident_bytes);
  reply->set_uptime_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  reply->set_pulled_keys(state_->counters.pulled_keys());
  reply->set_pushed_keys(state_->counters.pushed_keys());
  if (state_->stage.durable() != nullptr) {
    reply->set_commit(state_->stage.durable()->commit());
    reply->set_state_bytes(state_->stage.durable()->state_bytes());
    reply->set_memory_limit_bytes(state_->stage.durable()->memory_limit_bytes());
    const std::optional<uint64_t> copied = state_->stage.durable()->copied_commit();
    if (copied.has_value()) reply->set_copied_commit(*copied);
  }
  if (request.digest()) {
    // Reads every row, so no commit may run meanwhile; only other long jobs wait for it.
    absl::MutexLock job(&state_->job_mutex);
    reply->set_committed_pass(state_->stage.committed());
    return FillTables(state_->store, true, reply);
  }
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckTables());
  return FillTables(state_->store, false, reply);
}

}  // namespace cistern::server
