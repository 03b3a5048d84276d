#include "worker/pass/pass_source.h"

#include "common/check.h"
#include "worker/pass/batch_builder.h"
#include "worker/pass/sample_cursor.h"

namespace cistern {
namespace {

// What a distinct key takes beside its value: the key, and its share of the index at the worst
// load.
constexpr size_t kKeyBytes = 24;

SampleCursor::Options CursorOptions(const PassOptions& options) {
  SampleCursor::Options cursor;
  cursor.batchsize = options.batchsize;
  cursor.inputs = options.shape.slot_nums.size();
  cursor.wrap = options.max_batches > 0 && options.repeat;
  cursor.epochs = options.max_batches == 0 ? options.num_epochs : options.repeat ? 0 : 1;
  return cursor;
}

}  // namespace

struct PassSource::State {
  State(const PassOptions& given, OpenReader open)
      : options(given), cursor(CursorOptions(given), std::move(open)) {}

  absl::StatusOr<std::unique_ptr<Pass>> MakePass();
  // Adds the pending samples to `pass` as a batch; false, and nothing is changed, if that is over
  // the budget.
  bool Stage(Pass* pass);
  void Finish(Pass* pass);
  size_t KeyBytes(const Pass& pass) const;
  absl::Status TooLarge();
  bool AllMade() const {
    return (options.max_batches > 0 && batches_made == options.max_batches) ||
           (options.max_batches == 0 && options.num_epochs == 0);
  }

  const PassOptions options;
  SampleCursor cursor;
  BatchSamples samples;  // of the next batch, where pending
  bool pending = false;
  uint64_t batches_made = 0;
  size_t batch_bytes = 0;         // of the pass being made
  size_t wanted_bytes = 0;        // of the batch that did not fit
  uint32_t epoch = 0, place = 0;  // the next pass's place among those that begin in this epoch
  SegmentBuilder segments;
  absl::Status error;
};

PassSource::PassSource(const PassOptions& options, OpenReader open)
    : state_(std::make_unique<State>(options, std::move(open))) {
  CISTERN_CHECK(options.batchsize > 0);
  CISTERN_CHECK(options.value_bytes.size() == options.shape.slot_nums.size());
}

PassSource::~PassSource() = default;

absl::StatusOr<std::unique_ptr<Pass>> PassSource::Next() {
  CISTERN_RETURN_IF_ERROR(state_->error);
  absl::StatusOr<std::unique_ptr<Pass>> pass = state_->MakePass();
  state_->error = pass.status();
  return pass;
}

absl::StatusOr<std::unique_ptr<Pass>> PassSource::State::MakePass() {
  auto pass = std::make_unique<Pass>();
  pass->keys.resize(options.shape.slot_nums.size());
  batch_bytes = 0;
  while (!AllMade()) {
    if (!pending) {
      CISTERN_ASSIGN_OR_RETURN(pending, cursor.Next(&samples));
      if (!pending) break;
    }
    if (!Stage(pass.get())) {
      if (pass->batches.empty()) return TooLarge();
      break;
    }
    pending = false;
    ++batches_made;
    pass->ends_epoch = samples.ends_epoch;
    if (samples.ends_epoch) break;
    if (options.cut_every > 0 && batches_made % options.cut_every == 0) break;
  }
  if (pass->batches.empty()) return nullptr;
  Finish(pass.get());
  return pass;
}

bool PassSource::State::Stage(Pass* pass) {
  const size_t inputs = pass->keys.size();
  const size_t bytes = BatchBytes(samples.block, options.segments);
  std::vector<size_t> keys_before(inputs);
  std::vector<std::vector<Row>> rows(inputs);
  for (size_t i = 0; i < inputs; ++i) {
    const std::vector<Key>& keys = samples.block.sparse[i].keys;
    keys_before[i] = pass->keys[i].size();
    rows[i].resize(keys.size());
    pass->keys[i].Add(keys, rows[i].data());
  }
  wanted_bytes = KeyBytes(*pass) + batch_bytes + bytes;
  if (wanted_bytes > options.byte_budget) {
    for (size_t i = 0; i < inputs; ++i) pass->keys[i].Truncate(keys_before[i]);
    return false;
  }
  if (pass->batches.empty()) pass->epoch = samples.epoch;
  batch_bytes += bytes;
  pass->samples += samples.block.size;
  pass->batches.push_back(MakeBatch(std::move(samples.block), std::move(rows)));
  return true;
}

void PassSource::State::Finish(Pass* pass) {
  if (pass->epoch != epoch) place = 0;
  epoch = pass->epoch;
  const uint64_t stream = uint64_t{epoch} << 32 | place++;
  if (options.shuffle) ShuffleSamples(options.shuffle_seed, stream, &pass->batches);
  if (!options.segments) return;
  for (Batch& batch : pass->batches) segments.Build(&batch);
}

size_t PassSource::State::KeyBytes(const Pass& pass) const {
  size_t bytes = 0;
  for (size_t i = 0; i < pass.keys.size(); ++i) {
    bytes += pass.keys[i].size() * (options.value_bytes[i] + kKeyBytes);
  }
  return bytes;
}

absl::Status PassSource::State::TooLarge() {
  constexpr size_t kMiB = size_t{1} << 20;
  return absl::ResourceExhaustedError(
      absl::StrCat("one batch of ", samples.block.size, " samples takes ", wanted_bytes,
                   " bytes with the rows of its keys, and a pass may take ", options.byte_budget,
                   ": raise cistern.pass_memory_mb to at least ", (wanted_bytes + kMiB - 1) / kMiB,
                   ", or lower solver.batchsize"));
}

}  // namespace cistern
