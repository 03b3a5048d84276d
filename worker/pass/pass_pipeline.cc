#include "worker/pass/pass_pipeline.h"

#include "worker/pass/data_source.h"

namespace cistern {

absl::Status CarryOver(const ReadyPass& before, model::RowStage& stage, ReadyPass& now) {
  for (size_t e = 0; e < now.tables.size(); ++e) {
    CISTERN_RETURN_IF_ERROR(
        stage.Carry(*before.tables[e], now.carried[e].from, now.carried[e].to, *now.tables[e]));
  }
  return absl::OkStatus();
}

PassPipeline::PassPipeline(const model::ModelConfig& config, ParameterClient& client,
                           DeviceContext& device, group::ProcessGroup* group,
                           std::unique_ptr<data::PassSource> source, TraceFile* trace,
                           std::optional<bool> reads_ahead)
    : config_(config),
      client_(client),
      device_(device),
      group_(group),
      first_pass_(client.committed_pass() + 1),
      source_(std::move(source)),
      trace_(trace),
      reads_ahead_(reads_ahead.value_or(device.kind() != DeviceKind::kCpu && group == nullptr)),
      stage_(device) {
  threads_.Run([this] { ReadAll(); });
  threads_.Run([this] { PullAll(); });
}

PassPipeline::~PassPipeline() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

absl::StatusOr<std::shared_ptr<ReadyPass>> PassPipeline::Next(IdleTimes* idle) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&filled_));
  filled_ = false;
  ++returned_;
  if (slot_.ok() && *slot_ != nullptr) *idle += (*slot_)->times.Waited(begin);
  return std::move(slot_);
}

std::shared_ptr<const ReadyPass::CarriedRows> PassPipeline::SharedWithNext() const {
  absl::MutexLock lock(&mutex_);
  return shared_index_ == returned_ ? shared_ : nullptr;
}

bool PassPipeline::IsReady(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&filled_), patience);
}

void PassPipeline::Committed() {
  absl::MutexLock lock(&mutex_);
  ++committed_;
}

absl::StatusOr<PassPipeline::ReadPass> PassPipeline::ReadNext() {
  ReadPass read;
  read.begin = std::chrono::steady_clock::now();
  CISTERN_ASSIGN_OR_RETURN(read.pass, NextPass(*source_, config_, group_, PassUse::kTrain));
  read.end = std::chrono::steady_clock::now();
  return read;
}

void PassPipeline::ReadAll() {
  const auto may_read = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopping_ || (!read_filled_ && (reads_ahead_ || (!pulling_ && !filled_)));
  };
  while (true) {
    absl::StatusOr<ReadPass> read = ReadNext();
    const bool last = !read.ok() || read->pass == nullptr;
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](PassPipeline* self)
             ABSL_NO_THREAD_SAFETY_ANALYSIS { return self->stopping_ || !self->read_filled_; },
        this));
    if (stopping_) return;
    read_ = std::move(read);
    read_filled_ = true;
    if (last) return;
    mutex_.Await(absl::Condition(&may_read));
    if (stopping_) return;
  }
}

void PassPipeline::PullAll() {
  std::shared_ptr<ReadyPass> before;
  for (uint64_t index = 0;; ++index) {
    absl::StatusOr<ReadPass> read;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](PassPipeline* self)
               ABSL_NO_THREAD_SAFETY_ANALYSIS { return self->stopping_ || self->read_filled_; },
          this));
      if (stopping_) return;
      read = std::move(read_);
      read_filled_ = false;
      pulling_ = true;
    }
    absl::StatusOr<std::shared_ptr<ReadyPass>> made = Prepare(index, std::move(read), before.get());
    const bool last = !made.ok() || *made == nullptr;
    if (!last) before = *made;
    absl::MutexLock lock(&mutex_);
    pulling_ = false;
    slot_ = std::move(made);
    filled_ = true;
    mutex_.Await(absl::Condition(
        +[](PassPipeline* self)
             ABSL_NO_THREAD_SAFETY_ANALYSIS { return self->stopping_ || !self->filled_; },
        this));
    if (last) stopping_ = true;  // the reading thread has no taker any more
    if (stopping_) return;
  }
}

absl::StatusOr<std::shared_ptr<ReadyPass>> PassPipeline::Prepare(uint64_t index,
                                                                 absl::StatusOr<ReadPass> got,
                                                                 const ReadyPass* before) {
  CISTERN_ASSIGN_OR_RETURN(ReadPass read, std::move(got));
  if (read.pass == nullptr) return std::shared_ptr<ReadyPass>();
  auto ready = std::make_shared<ReadyPass>();
  ready->pass = std::move(read.pass);
  const SteadyTime search = std::chrono::steady_clock::now();
  std::vector<std::vector<Row>> missing = FindMissing(index, before, ready);
  ready->times.data_end = std::chrono::steady_clock::now();
  CISTERN_RETURN_IF_ERROR(AwaitCommits(index));
  ready->times.commit_end = std::chrono::steady_clock::now();
  for (size_t e = 0; e < missing.size(); ++e) {
    CISTERN_RETURN_IF_ERROR(PullMissing(e, first_pass_ + index, missing[e], *ready));
  }
  ready->times.pull_end = std::chrono::steady_clock::now();
  Trace(first_pass_ + index, read.begin, read.end, search, ready->times);
  return ready;
}

void PassPipeline::Trace(PassId pass, SteadyTime begin, SteadyTime end, SteadyTime search,
                         const PrepareTimes& times) const {
  if (trace_ == nullptr) return;
  constexpr char kThread[] = "next pass";
  trace_->AddSpan(reads_ahead_ ? "pass after it" : kThread, "read", begin, end, pass);
  trace_->AddSpan(kThread, "find shared rows", search, times.data_end, pass);
  trace_->AddSpan(kThread, "wait for commit", times.data_end, times.commit_end, pass);
  trace_->AddSpan(kThread, "pull", times.commit_end, times.pull_end, pass);
}

// The rows of pass i that pass i - 1 does not hold were last changed by pass i - 2 at the latest.
absl::Status PassPipeline::AwaitCommits(uint64_t index) {
  absl::MutexLock lock(&mutex_);
  const auto may_pull = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopping_ || committed_ + 1 >= index;
  };
  mutex_.Await(absl::Condition(&may_pull));
  return stopping_ ? absl::CancelledError("the passes are no longer needed") : absl::OkStatus();
}

// Needs no committed rows, so passes commit meanwhile.
std::vector<std::vector<Row>> PassPipeline::FindMissing(uint64_t index, const ReadyPass* before,
                                                        const std::shared_ptr<ReadyPass>& now) {
  std::vector<std::vector<Row>> missing(config_.embeddings.size());
  now->carried.resize(missing.size());
  if (before == nullptr) return missing;
  for (size_t e = 0; e < missing.size(); ++e) {
    const size_t input = config_.embeddings[e].input;
    data::SharedRows shared = data::FindShared(now->pass->keys[input], before->pass->keys[input]);
    missing[e] = std::move(shared.missing);
    now->carried[e] = {std::move(shared.there), std::move(shared.here)};
  }
  absl::MutexLock lock(&mutex_);
  shared_index_ = index;
  shared_ = std::shared_ptr<const ReadyPass::CarriedRows>(now, &now->carried);
  return missing;
}

absl::Status PassPipeline::PullMissing(size_t embedding, PassId pass, absl::Span<const Row> missing,
                                       ReadyPass& now) {
  const size_t input = config_.embeddings[embedding].input;
  const TableId table_id = static_cast<TableId>(embedding);
  const absl::Span<const Key> keys = now.pass->keys[input].keys();
  now.tables.push_back(std::make_unique<model::PassTable>(client_.layout(table_id), device_));
  model::PassTable& table = *now.tables.back();
  // Every row is pulled or carried over.
  CISTERN_RETURN_IF_ERROR(table.Resize(keys.size(), MemoryFill::kAny));
  table.set_keys(keys);
  const auto pull = [&](absl::Span<const Key> pulled) {
    return [this, table_id, pass, pulled](size_t first, size_t count, absl::Span<const Row> at,
                                          float* values, uint8_t* has_embedx) {
      return client_.Pull(table_id, pulled.subspan(first, count), /*absent_is_zero=*/false, values,
                          has_embedx, at, pass);
    };
  };
  if (now.carried[embedding].to.empty()) return stage_.Write(pull(keys), table);
  std::vector<Key> pulled;
  pulled.reserve(missing.size());
  for (const Row row : missing) pulled.push_back(keys[row]);
  return stage_.Write(missing, pull(pulled), table);
}

}  // namespace cistern
