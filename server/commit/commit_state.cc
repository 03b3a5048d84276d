#include "server/commit/commit_state.h"

#include "absl/strings/str_cat.h"
#include "common/base/pages.h"
#include "common/value/pass_days.h"
#include "server/commit/push_check.h"
#include "server/commit/staging.h"

namespace cistern::server {
namespace {

// Frees the staging and makes the allocator return its memory, perhaps gigabytes, to the system.
// Otherwise it would count as memory of the tables until the next pass.
void Free(std::unique_ptr<Staging> staging) {
  constexpr uint64_t kWorthReturning = 8 << 20;
  const uint64_t bytes = staging->bytes();
  staging.reset();
  if (bytes >= kWorthReturning) ReturnFreedMemory();
}

// Writes the pass into the rows of a bounded table, into a copy of their values: those that arrived
// may be the sender's. Which rows are due is decided by this number, so no worker chooses it.
void StampPass(const TableStore& store, PassId pass, StagedPush* push) {
  if (push->dense || push->removal) return;
  const ValueLayout& layout = store.sparse_tables()[push->table]->layout();
  if (!layout.is_bounded()) return;
  std::vector<float> values(push->values.begin(), push->values.end());
  for (size_t cell = layout.last_pass_index(); cell < values.size(); cell += layout.full_floats()) {
    values[cell] = CellOfPass(pass);
  }
  push->values = std::move(values);
}

absl::Status CheckDays(const TableStore& store, PassId pass, const v1::PassDays& days) {
  if (days.days().empty() && LongestExpireDays(store.schema()) > 0) {
    return absl::InvalidArgumentError(
        "a table expires rows by day, and the caller does not say which day it is");
  }
  return CheckPassDays(days, pass, store.schema());
}

}  // namespace

class CommitState::BusyScope {
 public:
  explicit BusyScope(CommitState* stage) : stage_(stage) {}
  ~BusyScope() {
    absl::MutexLock lock(&stage_->mutex_);
    stage_->busy_ = false;
  }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  CommitState* const stage_;
};

CommitState::CommitState(TableStore* store, ThreadPool* pool, uint64_t byte_limit)
    : store_(store), pool_(pool), byte_limit_(byte_limit), staging_(std::make_unique<Staging>()) {}

CommitState::~CommitState() = default;

PassId CommitState::committed() const {
  absl::ReaderMutexLock lock(&mutex_);
  return committed_;
}

PassId CommitState::open() const {
  absl::ReaderMutexLock lock(&mutex_);
  return open_;
}

uint64_t CommitState::staged_bytes() const {
  absl::ReaderMutexLock lock(&mutex_);
  return staged_bytes_;
}

absl::Status CommitState::Begin(PassId pass, uint32_t worker_num, bool replica) {
  if (worker_num < 1 || worker_num > kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("pass ", pass, " cannot begin for ", worker_num,
                                                   " workers; 1 to ", kMaxWorkers,
                                                   " can share one"));
  }
  absl::MutexLock lock(&mutex_);
  AwaitIdle();
  if (pass != committed_ + 1 && !(replica && pass > committed_)) {
    return WrongPass(pass, pass > committed_,
                     absl::StrCat("pass ", pass, " cannot begin: pass ", committed_,
                                  " is committed, so the next is ", committed_ + 1));
  }
  if (open_ == pass && worker_num != worker_num_) {
    return absl::FailedPreconditionError(absl::StrCat("pass ", pass, " is open for ", worker_num_,
                                                      " workers, so it cannot begin for ",
                                                      worker_num));
  }
  if (open_ != 0 && (open_ != pass || replica_ != replica)) {
    return absl::FailedPreconditionError(
        absl::StrCat("pass ", open_, " is open", replica_ ? " as a replica" : "", ", so pass ",
                     pass, " cannot begin", replica ? " as a replica" : ""));
  }
  open_ = pass;
  worker_num_ = worker_num;
  replica_ = replica;
  return absl::OkStatus();
}

absl::Status CommitState::Push(PassId pass, uint32_t worker, uint64_t sequence, StagedPush push) {
  CISTERN_RETURN_IF_ERROR(CheckPush(*store_, push));
  const bool replica = [&] {
    absl::ReaderMutexLock lock(&mutex_);
    return open_ == pass && replica_;
  }();
  if (!replica) StampPass(*store_, pass, &push);
  absl::MutexLock lock(&mutex_);
  AwaitIdle();
  CISTERN_RETURN_IF_ERROR(CheckOpen(pass));
  CISTERN_RETURN_IF_ERROR(CheckWorker(worker));
  if (replica != replica_) {
    return absl::AbortedError(absl::StrCat("pass ", pass, " was begun anew during a push"));
  }
  if (push.removal && !replica) {
    return absl::InvalidArgumentError(
        absl::StrCat("pass ", pass, " is not a replica, so its pushes cannot remove rows"));
  }
  CISTERN_RETURN_IF_ERROR(staging_->Add(worker, sequence, std::move(push), byte_limit_));
  staged_bytes_ = staging_->bytes();
  return absl::OkStatus();
}

absl::Status CommitState::Seal(PassId pass, uint32_t worker, uint64_t push_count) {
  absl::MutexLock lock(&mutex_);
  AwaitIdle();
  CISTERN_RETURN_IF_ERROR(CheckOpen(pass));
  CISTERN_RETURN_IF_ERROR(CheckWorker(worker));
  return staging_->Seal(worker, push_count);
}

absl::Status CommitState::Prepare(PassId pass, const PrepareOrder& order, Prepared* prepared) {
  Staging* staging;
  uint32_t worker_num = 1;
  bool replica = false;
  {
    absl::MutexLock lock(&mutex_);
    AwaitIdle();
    CISTERN_RETURN_IF_ERROR(CheckOpen(pass));
    worker_num = worker_num_;
    replica = replica_;
    if (replica && durable_ != nullptr && !order.durable) {
      return absl::InvalidArgumentError(
          absl::StrCat("pass ", pass, " is a replica, so its commit must be durable"));
    }
    if (prepared_ && staging_->days().SerializeAsString() != order.days.SerializeAsString()) {
      return absl::FailedPreconditionError(
          absl::StrCat("pass ", pass, " is prepared already, with other days of passes"));
    }
    if (prepared_ && !(order.durable && durable_->prepared().files().empty())) {
      prepared->rows = prepared_rows_;
      prepared->removed = prepared_removed_;
      if (order.durable) prepared->part = durable_->prepared();
      return absl::OkStatus();
    }
    busy_ = true;
    staging = staging_.get();
  }
  const BusyScope busy(this);
  absl::Status status = CheckDays(*store_, pass, order.days);
  if (status.ok()) status = staging->Check(*store_, *pool_, worker_num, &prepared->rows);
  const DatedPass dated = {pass, order.days};
  if (status.ok()) {
    status = replica ? staging->PlanReplicas(*store_, dated, *pool_)
                     : staging->PlanEvictions(*store_, dated, *pool_);
  }
  prepared->removed = staging->removed();
  if (status.ok() && durable_ != nullptr) {
    status = durable_->Prepare(*store_, *staging, order.term, order.durable, &prepared->part);
  }
  absl::MutexLock lock(&mutex_);
  prepared_ = status.ok();
  prepared_rows_ = prepared->rows;
  prepared_removed_ = prepared->removed;
  return AddContext(status, absl::StrCat("pass ", pass, " cannot commit"));
}

bool CommitState::IsPrepared(PassId pass) const {
  absl::ReaderMutexLock lock(&mutex_);
  return open_ == pass && prepared_;
}

absl::Status CommitState::Commit(PassId pass, uint64_t commit, const v1::StepClock& clock,
                                 bool* adopted) {
  *adopted = true;
  if (durable_ == nullptr) commit = 0;
  if (commit > 0) {
    if (durable_->commit() >= commit) return absl::OkStatus();  // an earlier call did it
    CISTERN_ASSIGN_OR_RETURN(const bool mine, durable_->CanAdopt(commit));
    *adopted = mine && IsPrepared(pass);
    if (!*adopted) return absl::OkStatus();
  }
  return WriteStaged(pass, commit, clock);
}

absl::Status CommitState::WriteStaged(PassId pass, uint64_t commit, const v1::StepClock& clock) {
  const Staging* staging;
  {
    absl::MutexLock lock(&mutex_);
    AwaitIdle();
    if (pass == committed_) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(CheckOpen(pass));
    if (!prepared_) {
      return absl::FailedPreconditionError(
          absl::StrCat("pass ", pass, " cannot commit: it is open but not prepared"));
    }
    busy_ = true;
    staging = staging_.get();
  }
  std::unique_ptr<Staging> done;
  {
    const BusyScope busy(this);
    if (durable_ != nullptr) {
      durable_->Adopt(*store_, *staging, commit);
    } else {
      staging->Write(*store_, *pool_);
    }
    store_->set_clock(clock);
    store_->set_days(staging->days());
    absl::MutexLock lock(&mutex_);
    done = Close(pass);
  }
  Free(std::move(done));
  return absl::OkStatus();
}

absl::Status CommitState::Abort(PassId pass) {
  std::unique_ptr<Staging> dropped;
  {
    absl::MutexLock lock(&mutex_);
    AwaitIdle();
    if (open_ == 0 || pass != open_) return absl::OkStatus();
    dropped = Drop(committed_);
  }
  Free(std::move(dropped));
  return absl::OkStatus();
}

void CommitState::Reset(PassId pass) {
  std::unique_ptr<Staging> dropped;
  {
    absl::MutexLock lock(&mutex_);
    AwaitIdle();
    dropped = Drop(pass);
  }
  Free(std::move(dropped));
}

absl::Status CommitState::Attach(std::unique_ptr<DurableState> durable) {
  durable_ = std::move(durable);
  return Recover();
}

absl::Status CommitState::Recover() {
  CISTERN_ASSIGN_OR_RETURN(const PassId pass, durable_->Recover(*store_));
  for (const auto& table : store_->sparse_tables()) {
    if (!table->layout().is_bounded()) continue;
    CISTERN_RETURN_IF_ERROR(FindDue(*table, {pass, store_->days()}, *pool_));
  }
  Recovered(pass);
  return absl::OkStatus();
}

void CommitState::Changed(uint64_t before, const std::vector<std::vector<std::vector<Key>>>* keys) {
  if (durable_ != nullptr) durable_->Changed(before, keys);
}

absl::Status CommitState::CheckChanges(uint64_t changes) const {
  return durable_ == nullptr ? absl::OkStatus() : durable_->CheckChanges(changes);
}

absl::Status CommitState::CheckCommitted() const {
  if (durable_ == nullptr || !durable_->dirty()) return absl::OkStatus();
  return absl::UnavailableError(
      "this server's tables were loaded, cleared or shrunk, and the change is not committed yet; "
      "retry soon");
}

void CommitState::Recovered(PassId pass) {
  Reset(pass);
  absl::MutexLock lock(&mutex_);
  recovered_ = pass;
}

absl::Status CommitState::CheckOpen(PassId pass) const {
  if (open_ != 0 && pass == open_) return absl::OkStatus();
  return WrongPass(
      pass, pass > committed_ && open_ == 0,
      absl::StrCat("pass ", pass, " is not open on this server: pass ", committed_,
                   " is committed and ",
                   open_ == 0 ? "none is open" : absl::StrCat("pass ", open_, " is open")));
}

absl::Status CommitState::CheckWorker(uint32_t worker) const {
  if (worker < worker_num_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", worker, " is not in pass ", open_,
                                                 ", which was begun for ", worker_num_,
                                                 worker_num_ == 1 ? " worker" : " workers"));
}

absl::Status CommitState::WrongPass(PassId pass, bool lost, const std::string& what) const {
  if (recovered_ > 0 && pass <= recovered_) {
    return absl::AbortedError(absl::StrCat(
        what, ": this server was restarted with pass ", recovered_,
        " and has lost its staged pushes; claim a new term and resume from that pass"));
  }
  return lost ? absl::AbortedError(what) : absl::FailedPreconditionError(what);
}

void CommitState::AwaitIdle() const {
  mutex_.Await(absl::Condition(
      +[](const bool* busy) { return !*busy; }, &busy_));
}

std::unique_ptr<Staging> CommitState::Drop(PassId pass) {
  for (const auto& table : store_->sparse_tables()) table->DropPlaced();
  return Close(pass);
}

std::unique_ptr<Staging> CommitState::Close(PassId pass) {
  auto staging = std::make_unique<Staging>();  // first, because it may run out of memory
  committed_ = pass;
  open_ = 0;
  replica_ = false;
  prepared_ = false;
  prepared_rows_ = 0;
  prepared_removed_ = {};
  staged_bytes_ = 0;
  staging.swap(staging_);
  return staging;
}

}  // namespace cistern::server
