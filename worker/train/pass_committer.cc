#include "worker/train/pass_committer.h"

#include <utility>

#include "common/base/check.h"
#include "worker/train/training_group.h"

namespace cistern {

bool IsLostPass(const ParameterClient& client, const absl::Status& status) {
  return client.durable() && (status.code() == absl::StatusCode::kAborted ||
                              status.code() == absl::StatusCode::kUnavailable ||
                              status.code() == absl::StatusCode::kDeadlineExceeded);
}

PassCommitter::PassCommitter(ParameterClient& client, DeviceContext& device,
                             group::ProcessGroup* group, TraceFile* trace)
    : client_(client), group_(group), trace_(trace), stage_(device) {}

PassCommitter::~PassCommitter() = default;

void PassCommitter::Start(FrozenPass pass, std::function<void()> committed) {
  CISTERN_CHECK(!in_flight_);
  in_flight_ = true;
  // Shared because a std::function must be copyable; the rows are freed with it, on this thread.
  auto frozen = std::make_shared<FrozenPass>(std::move(pass));
  thread_.Run([this, frozen = std::move(frozen), committed = std::move(committed)]() mutable {
    absl::Status result = Commit(*frozen);
    frozen.reset();
    if (result.ok()) committed();
    absl::MutexLock lock(&mutex_);
    result_ = std::move(result);
    has_result_ = true;
  });
}

bool PassCommitter::has_result() const {
  absl::MutexLock lock(&mutex_);
  return has_result_;
}

absl::Status PassCommitter::Wait() {
  if (!in_flight_) return absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&has_result_));
    has_result_ = false;
  }
  in_flight_ = false;
  for (std::string& server : client_.TakeRestarted()) restarted_.push_back(std::move(server));
  return std::exchange(result_, absl::OkStatus());
}

absl::Status PassCommitter::Commit(const FrozenPass& pass) {
  const uint32_t workers = group_ == nullptr ? 1 : group_->size();
  CISTERN_RETURN_IF_ERROR(group::Lead(group_, [&] { return client_.BeginPass(workers); }));
  if (!leads()) client_.JoinPass();
  const absl::Status committed = [&]() -> absl::Status {
    const SteadyTime begin = std::chrono::steady_clock::now();
    CISTERN_RETURN_IF_ERROR(group::Agree(group_, PushAll(pass)));
    const SteadyTime pushed = std::chrono::steady_clock::now();
    CISTERN_RETURN_IF_ERROR(group::Lead(group_, [&] { return client_.CommitPass(pass.options); }));
    if (group_ != nullptr) CISTERN_RETURN_IF_ERROR(FollowWriter(*group_, client_));
    if (trace_ != nullptr) {
      const PassId number = client_.committed_pass();
      trace_->AddSpan("commit", "push", begin, pushed, number);
      trace_->AddSpan("commit", "commit", pushed, std::chrono::steady_clock::now(), number);
    }
    return absl::OkStatus();
  }();
  // Abort errors are ignored, so that the caller sees the cause. A lost pass needs no abort: the
  // next claim drops it.
  if (!committed.ok() && leads() && !IsLostPass(client_, committed)) {
    client_.AbortPass().IgnoreError();
  }
  return committed;
}

// Pushes this worker's rows; worker 0 also pushes the dense parameters, which all workers share.
absl::Status PassCommitter::PushAll(const FrozenPass& pass) {
  for (size_t e = 0; e < pass.rows->tables.size(); ++e) {
    const model::PassTable& table = *pass.rows->tables[e];
    const TableId id = static_cast<TableId>(e);
    if (e < pass.staying.size() && pass.staying[e] != nullptr) {
      CISTERN_RETURN_IF_ERROR(PushLeaving(id, table, *pass.staying[e]));
      continue;
    }
    CISTERN_RETURN_IF_ERROR(stage_.Read(
        table, [&](size_t first, size_t count, const float* values, const uint8_t* has_embedx) {
          return client_.Push(id, table.keys().subspan(first, count), values, has_embedx);
        }));
  }
  if (!leads()) return client_.SealPass();
  for (size_t i = 0; pass.dense != nullptr && i < pass.dense->tables(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(const absl::Span<const float> values, pass.dense->Read(i));
    CISTERN_RETURN_IF_ERROR(client_.PushDense(static_cast<TableId>(i), values.data()));
  }
  return absl::OkStatus();
}

absl::Status PassCommitter::PushLeaving(TableId id, const model::PassTable& table,
                                        absl::Span<const Row> staying) {
  std::vector<bool> stays(table.rows());
  for (const Row row : staying) stays[row] = true;
  std::vector<Row> rows;
  std::vector<Key> keys;
  rows.reserve(table.rows() - staying.size());
  keys.reserve(rows.capacity());
  for (Row row = 0; row < table.rows(); ++row) {
    if (stays[row]) continue;
    rows.push_back(row);
    keys.push_back(table.keys()[row]);
  }
  return stage_.Read(table, rows,
                     [&](size_t first, size_t count, absl::Span<const Row> at, const float* values,
                         const uint8_t* has_embedx) {
                       return client_.Push(id, absl::MakeSpan(keys).subspan(first, count), values,
                                           has_embedx, at);
                     });
}

}  // namespace cistern
