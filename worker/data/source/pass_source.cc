#include "worker/data/source/pass_source.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/thread_pool.h"
#include "worker/data/source/batch_builder.h"
#include "worker/data/source/sample_cursor.h"
#include "worker/data/source/stream_cursor.h"

namespace cistern {
namespace {

// With a coordinator (worker/pass/shared_pass.h), the bytes of the exchange per occurrence of a
// key: rows that other workers take from this one, and places of rows that other workers hold.
constexpr size_t kExchangeBytes = 24;

size_t PartBegin(size_t batchsize, uint64_t part, uint64_t parts) {
  return batchsize * part / parts;
}

bool Wraps(const PassOptions& options) {
  return options.max_batches > 0 && options.repeat;
}

uint32_t Epochs(const PassOptions& options) {
  return options.max_batches == 0 ? options.num_epochs : options.repeat ? 0 : 1;
}

std::unique_ptr<BatchCursor> OpenInOrder(const PassOptions& options, PassSource::OpenStream open,
                                         const DataPlace& start) {
  SampleCursor::Options cursor;
  cursor.batchsize = options.batchsize;
  cursor.part_begin = PartBegin(options.batchsize, options.part, options.parts);
  cursor.part_end = PartBegin(options.batchsize, options.part + 1, options.parts);
  cursor.inputs = options.shape.slot_nums.size();
  cursor.wrap = Wraps(options);
  cursor.epochs = Epochs(options);
  return std::make_unique<SampleCursor>(
      cursor, [open = std::move(open)](uint32_t epoch) { return open(epoch, 0); }, start);
}

// coordinator: null for a single worker.
std::unique_ptr<BatchCursor> OpenStreams(const PassOptions& options, PassSource::OpenStream open,
                                         PassCoordinator* coordinator, ThreadPool* threads,
                                         const DataPlace& start) {
  StreamCursor::Options cursor;
  cursor.threads = threads;
  cursor.batchsize = options.batchsize;
  cursor.streams = options.streams;
  cursor.part = options.part;
  cursor.parts = options.parts;
  cursor.inputs = options.shape.slot_nums.size();
  cursor.wrap = Wraps(options);
  cursor.epochs = Epochs(options);
  StreamCursor::Share share;
  if (coordinator != nullptr) {
    share = [coordinator](const auto& own) { return coordinator->Share(own); };
  }
  return std::make_unique<StreamCursor>(cursor, std::move(open), std::move(share), start);
}

}  // namespace

struct PassSource::State {
  State(const PassOptions& given, OpenStream open, const PassCursor& start,
        std::unique_ptr<KeyCollector> collector, std::unique_ptr<PassCoordinator> others)
      : options(given),
        threads(given.threads),
        coordinator(std::move(others)),
        keys(collector != nullptr ? std::move(collector)
                                  : KeyCollector::OnHost(given.shape.slot_nums.size())),
        cursor(given.streams == 1
                   ? OpenInOrder(given, std::move(open), start.next)
                   : OpenStreams(given, std::move(open), coordinator.get(), &threads, start.next)),
        batches_made(start.batches),
        shuffle_epoch(start.shuffle_epoch),
        shuffle_place(start.shuffle_place),
        forced_batches(start.pass_batches),
        batches_done(start.batches_done) {}

  absl::StatusOr<std::unique_ptr<Pass>> MakePass();
  // Reads the next batch if none is pending, and adds its keys.
  absl::StatusOr<PassCoordinator::Claim> Claim();
  // The claim on which all workers agree. Requires a coordinator.
  absl::StatusOr<PassCoordinator::Claim> AgreedClaim();
  // Adds the pending samples to `pass` as a batch; false, with no change to `pass`, if the batch
  // exceeds the budget.
  bool Stage(const PassCoordinator::Claim& claim, Pass* pass);
  // The cursor at the start of the next pass.
  PassCursor Cursor() const;
  bool Ends(const Pass& pass) const;
  bool IsLongEnough(const Pass& pass) const;
  absl::Status Finish(Pass* pass);
  void BuildSegments(Pass* pass);
  // Removes the batches that are already trained.
  void DropDone(Pass* pass);
  size_t KeyBytes() const;
  size_t PendingBytes() const;  // of the pending samples as a batch
  absl::Status TooLarge() const;
  absl::Status CutShort(size_t batches) const;
  bool AllMade() const {
    return (options.max_batches > 0 && batches_made >= options.max_batches) ||
           (options.max_batches == 0 && options.num_epochs == 0);
  }

  const PassOptions options;
  ThreadPool threads;
  const std::unique_ptr<PassCoordinator> coordinator;
  const std::unique_ptr<KeyCollector> keys;
  const std::unique_ptr<BatchCursor> cursor;
  BatchSamples samples;  // of the next batch, if pending
  bool pending = false;
  DataPlace pending_place;  // where the pending batch begins
  uint64_t batches_made;
  size_t batch_bytes = 0;                 // batches of the current pass
  PassCoordinator::Claim wanted;          // of the last staged or refused batch
  uint32_t shuffle_epoch, shuffle_place;  // an epoch; passes shuffled so far that begin in it
  uint64_t forced_batches, batches_done;  // of the first pass if the start is inside it; else 0
  absl::Status error;
};

PassSource::PassSource(const PassOptions& options, OpenReader open, const PassCursor& start,
                       std::unique_ptr<KeyCollector> keys,
                       std::unique_ptr<PassCoordinator> coordinator)
    : PassSource(
          options, [open = std::move(open)](uint32_t epoch, uint32_t) { return open(epoch); },
          start, std::move(keys), std::move(coordinator)) {
  CISTERN_CHECK(options.streams == 1);
}

PassSource::PassSource(const PassOptions& options, OpenStream open, const PassCursor& start,
                       std::unique_ptr<KeyCollector> keys,
                       std::unique_ptr<PassCoordinator> coordinator)
    : state_(std::make_unique<State>(options, std::move(open), start, std::move(keys),
                                     std::move(coordinator))) {
  CISTERN_CHECK(start.pass_batches == 0 || start.batches_done < start.pass_batches);
  CISTERN_CHECK(options.batchsize > 0 && options.streams > 0);
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
  pass->begin = Cursor();
  batch_bytes = 0;
  while (forced_batches > 0 || !AllMade()) {
    CISTERN_ASSIGN_OR_RETURN(const PassCoordinator::Claim claim,
                             coordinator == nullptr ? Claim() : AgreedClaim());
    if (claim.samples == 0) break;
    if (!Stage(claim, pass.get())) {
      if (pass->batches.empty() || forced_batches > 0) return TooLarge();
      break;
    }
    pending = false;
    ++batches_made;
    pass->ends_epoch = samples.ends_epoch;
    if (Ends(*pass)) break;
  }
  if (pass->batches.size() < forced_batches) return CutShort(pass->batches.size());
  if (pass->batches.empty()) return nullptr;
  CISTERN_RETURN_IF_ERROR(Finish(pass.get()));
  return pass;
}

bool PassSource::State::Ends(const Pass& pass) const {
  if (forced_batches > 0) return pass.batches.size() == forced_batches;
  return pass.ends_epoch || (options.cut_every > 0 && batches_made % options.cut_every == 0) ||
         IsLongEnough(pass);
}

bool PassSource::State::IsLongEnough(const Pass& pass) const {
  if (options.first_samples == 0 || options.shuffle) return false;
  constexpr uint64_t kGrowth = 3;
  const uint64_t first = (options.first_samples + options.batchsize - 1) / options.batchsize;
  return pass.batches.size() >= std::max(first, kGrowth * pass.begin.batches);
}

PassCursor PassSource::State::Cursor() const {
  PassCursor at;
  at.next = pending ? pending_place : cursor->place();
  at.batches = batches_made;
  at.shuffle_epoch = shuffle_epoch;
  at.shuffle_place = shuffle_place;
  at.pass_batches = forced_batches;
  at.batches_done = batches_done;
  return at;
}

absl::StatusOr<PassCoordinator::Claim> PassSource::State::Claim() {
  if (!pending) {
    pending_place = cursor->place();
    CISTERN_ASSIGN_OR_RETURN(pending, cursor->Next(&samples));
    if (!pending) return PassCoordinator::Claim{};
  }
  CISTERN_RETURN_IF_ERROR(keys->Add(samples.block));
  const uint64_t batches = batch_bytes + PendingBytes();
  PassCoordinator::Claim claim = {samples.all, KeyBytes(), options.byte_budget};
  if (options.batch_budget == 0) {
    claim.bytes += batches;
  } else {
    claim.batch_bytes = batches;
    claim.batch_budget = options.batch_budget;
  }
  return claim;
}

absl::StatusOr<PassCoordinator::Claim> PassSource::State::AgreedClaim() {
  const absl::StatusOr<PassCoordinator::Claim> own = Claim();
  std::vector<absl::Span<const Key>> added(options.value_bytes.size());
  for (size_t i = 0; i < added.size() && own.ok() && own->samples > 0; ++i) {
    added[i] = keys->added(i);
  }
  return coordinator->Agree(own, added);
}

bool PassSource::State::Stage(const PassCoordinator::Claim& claim, Pass* pass) {
  wanted = claim;
  if (!claim.Fits()) {
    keys->Drop();
    if (coordinator != nullptr) coordinator->Drop();
    return false;
  }
  if (pass->batches.empty()) pass->epoch = samples.epoch;
  batch_bytes += PendingBytes();
  pass->samples += samples.all;
  HostBatch& batch = pass->batches.emplace_back(keys->Take(std::move(samples.block)));
  batch.all = samples.all;
  batch.first = samples.first;
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    batch.sparse[i].slot_num = options.shape.slot_nums[i];
  }
  return true;
}

size_t PassSource::State::PendingBytes() const {
  size_t bytes = BatchBytes(samples.block, options.segments);
  if (options.parts == 1) return bytes;
  for (const SparseColumn& column : samples.block.sparse)
    bytes += column.keys.size() * kExchangeBytes;
  return bytes;
}

absl::Status PassSource::State::Finish(Pass* pass) {
  if (pass->epoch != shuffle_epoch) shuffle_place = 0;
  shuffle_epoch = pass->epoch;
  const uint64_t stream = uint64_t{shuffle_epoch} << 32 | shuffle_place++;
  if (options.shuffle) ShuffleSamples(options.shuffle_seed, stream, &pass->batches);
  DropDone(pass);
  forced_batches = batches_done = 0;
  pass->end = Cursor();
  pass->is_last = AllMade() || (!pending && cursor->at_end());
  CISTERN_RETURN_IF_ERROR(keys->Finish(pass));
  if (coordinator != nullptr) pass->owned = coordinator->Take();
  if (!options.segments || !keys->wants_segments()) return absl::OkStatus();
  if (coordinator != nullptr) return absl::OkStatus();  // rows have no places yet
  BuildSegments(pass);
  return absl::OkStatus();
}

void PassSource::State::BuildSegments(Pass* pass) {
  // Batches that one builder sorts, so that it reuses its memory.
  constexpr size_t kAtOnce = 8;
  std::vector<HostBatch>& batches = pass->batches;
  threads.ParallelFor((batches.size() + kAtOnce - 1) / kAtOnce, [&](size_t part) {
    SegmentBuilder segments;
    for (size_t b = part * kAtOnce; b < std::min(batches.size(), (part + 1) * kAtOnce); ++b) {
      segments.Build(&batches[b]);
    }
  });
}

void PassSource::State::DropDone(Pass* pass) {
  const auto first = pass->batches.begin();
  for (size_t i = 0; i < batches_done; ++i) pass->samples -= first[i].all;
  pass->batches.erase(first, first + static_cast<ptrdiff_t>(batches_done));
}

// With a coordinator, the owners hold and count the values; this worker counts only the index.
size_t PassSource::State::KeyBytes() const {
  size_t bytes = 0;
  for (size_t i = 0; i < options.value_bytes.size(); ++i) {
    const size_t value_bytes = coordinator == nullptr ? options.value_bytes[i] : 0;
    bytes += keys->size(i) * (value_bytes + kKeyBytes);
  }
  return bytes;
}

absl::Status PassSource::State::CutShort(size_t batches) const {
  return absl::DataLossError(absl::StrCat("the run stopped inside a pass of ", forced_batches,
                                          " batches, but only ", batches,
                                          " of them are left in the data: the data changed since "
                                          "the run stopped; restore it, or train from the start"));
}

absl::Status PassSource::State::TooLarge() const {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const bool of_rows = wanted.bytes > wanted.budget;
  const uint64_t bytes = of_rows ? wanted.bytes : wanted.batch_bytes;
  const uint64_t budget = of_rows ? wanted.budget : wanted.batch_budget;
  const bool on_device = of_rows && wanted.batch_budget > 0;
  const char* option = on_device ? "cistern.device_memory_mb" : "cistern.pass_memory_mb";
  if (forced_batches > 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the run stopped inside a pass of ", forced_batches,
                     " batches, which must be rebuilt with the same batches; it takes ", bytes,
                     " bytes or more, but the limit of a pass is ", budget, ": set ", option,
                     " to the value that it had"));
  }
  const std::string what = absl::StrCat("one batch of ", samples.all, " samples takes ", bytes,
                                        of_rows ? " bytes with the rows of its keys" : " bytes",
                                        ", but the limit of a pass is ", budget);
  if (of_rows && options.device_bound) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ", a quarter of the GPU memory left by the model: lower solver.batchsize"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(what, ": raise ", option, " to at least ",
                                                   (bytes + kMiB - 1) / kMiB,
                                                   ", or lower solver.batchsize"));
}

}  // namespace cistern
