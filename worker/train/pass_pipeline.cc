#include "worker/train/pass_pipeline.h"

#include <cstring>

namespace cistern {
namespace {

// Rows pulled at once into the buffer that is then spread over the table.
constexpr size_t kPullRows = size_t{1} << 18;

}  // namespace

void CarryOver(const ReadyPass& before, ReadyPass& now) {
  for (size_t e = 0; e < now.tables.size(); ++e) {
    const PassTable& from = *before.tables[e];
    PassTable& to = *now.tables[e];
    const size_t bytes = to.stride() * sizeof(float);
    for (const auto& [old_row, new_row] : now.carried[e]) {
      std::memcpy(to.row(new_row), from.row(old_row), bytes);
      to.full()[new_row] = from.full()[old_row];
    }
  }
}

PassPipeline::PassPipeline(const ModelConfig& config, ParameterClient& client,
                           std::unique_ptr<PassSource> source)
    : config_(config), client_(client), source_(std::move(source)) {
  thread_.Run([this] { Run(); });
}

PassPipeline::~PassPipeline() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

absl::StatusOr<std::shared_ptr<ReadyPass>> PassPipeline::Next() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&filled_));
  filled_ = false;
  return std::move(slot_);
}

void PassPipeline::Run() {
  std::shared_ptr<ReadyPass> before;
  while (true) {
    absl::StatusOr<std::shared_ptr<ReadyPass>> made = Prepare(before.get());
    const bool last = !made.ok() || *made == nullptr;
    if (!last) before = *made;
    absl::MutexLock lock(&mutex_);
    slot_ = std::move(made);
    filled_ = true;
    mutex_.Await(absl::Condition(
        +[](PassPipeline* self)
             ABSL_NO_THREAD_SAFETY_ANALYSIS { return self->stopping_ || !self->filled_; },
        this));
    if (stopping_ || last) return;
  }
}

absl::StatusOr<std::shared_ptr<ReadyPass>> PassPipeline::Prepare(const ReadyPass* before) {
  auto ready = std::make_shared<ReadyPass>();
  CISTERN_ASSIGN_OR_RETURN(ready->pass, source_->Next());
  if (ready->pass == nullptr) return std::shared_ptr<ReadyPass>();
  ready->carried.resize(config_.embeddings.size());
  for (size_t e = 0; e < config_.embeddings.size(); ++e) {
    CISTERN_RETURN_IF_ERROR(PullMissing(e, before, *ready));
  }
  return ready;
}

absl::Status PassPipeline::PullMissing(size_t embedding, const ReadyPass* before, ReadyPass& now) {
  const size_t input = config_.embeddings[embedding].input;
  const TableId table_id = static_cast<TableId>(embedding);
  const absl::Span<const Key> keys = now.pass->keys[input].keys();
  now.tables.push_back(std::make_unique<PassTable>(client_.layout(table_id)));
  PassTable& table = *now.tables.back();
  table.Resize(keys.size());
  table.set_keys(keys);
  if (before == nullptr) {
    return client_.Pull(table_id, keys, /*absent_is_zero=*/false, table.values(), table.full());
  }
  std::vector<Key> missing;
  std::vector<Row> rows;
  const KeyIndex& old_index = before->pass->keys[input];
  for (Row row = 0; row < keys.size(); ++row) {
    const Row old_row = old_index.Find(keys[row]);
    if (old_row != KeyIndex::kNone) {
      now.carried[embedding].emplace_back(old_row, row);
    } else {
      missing.push_back(keys[row]);
      rows.push_back(row);
    }
  }
  const size_t stride = table.stride();
  std::vector<float> values(std::min(missing.size(), kPullRows) * stride);
  std::vector<uint8_t> full(std::min(missing.size(), kPullRows));
  for (size_t begin = 0; begin < missing.size(); begin += kPullRows) {
    const size_t count = std::min(kPullRows, missing.size() - begin);
    CISTERN_RETURN_IF_ERROR(client_.Pull(table_id, absl::MakeSpan(missing).subspan(begin, count),
                                         /*absent_is_zero=*/false, values.data(), full.data()));
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(table.row(rows[begin + i]), &values[i * stride], stride * sizeof(float));
      table.full()[rows[begin + i]] = full[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace cistern
