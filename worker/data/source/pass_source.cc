#include "worker/data/source/pass_source.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/thread_pool.h"
#include "worker/data/source/batch_builder.h"
#include "worker/data/source/read_ahead_cursor.h"
#include "worker/data/source/sample_cursor.h"
#include "worker/data/source/stream_cursor.h"

namespace cistern::data {
namespace {

// With a coordinator (worker/pass/shared_pass.h), the bytes of the exchange per occurrence of a
// key: rows that other workers take from this one, and places of rows that other workers hold.
constexpr size_t kExchangeBytes = 24;

size_t PartBegin(size_t batchsize, uint64_t part, uint64_t parts) {
  return batchsize * part / parts;
}

bool Wraps(const PassOptions& options) {
  return options.max_batches > 0 && options.repeat && options.endless == nullptr;
}

uint32_t Epochs(const PassOptions& options) {
  if (options.endless != nullptr) return 0;
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
  cursor.begins = options.endless.get();
  StreamCursor::Share share;
  if (coordinator != nullptr) {
    share = [coordinator](const auto& own) { return coordinator->Share(own); };
  }
  return std::make_unique<StreamCursor>(cursor, std::move(open), std::move(share), start);
}

std::unique_ptr<BatchCursor> OpenCursor(const PassOptions& options, PassSource::OpenStream open,
                                        PassCoordinator* coordinator, ThreadPool* threads,
                                        std::shared_ptr<BlockPool> blocks, const DataPlace& start) {
  const bool in_order = options.streams == 1 && options.endless == nullptr;
  std::unique_ptr<BatchCursor> cursor =
      in_order ? OpenInOrder(options, std::move(open), start)
               : OpenStreams(options, std::move(open), coordinator, threads, start);
  // Streams of several workers agree on each batch, in the order of their other calls.
  const bool agrees = !in_order && coordinator != nullptr;
  if (!options.read_ahead || options.endless != nullptr || agrees) return cursor;
  return std::make_unique<ReadAheadCursor>(std::move(cursor), std::move(blocks));
}

}  // namespace

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
    : options_(options),
      threads_(options.threads),
      coordinator_(std::move(coordinator)),
      keys_(keys != nullptr ? std::move(keys)
                            : KeyCollector::OnHost(options.shape.slot_nums.size())),
      // The host's collector turns keys into rows, so their memory does not come back.
      blocks_(keys_->wants_segments() ? nullptr : std::make_shared<BlockPool>()),
      cursor_(
          OpenCursor(options, std::move(open), coordinator_.get(), &threads_, blocks_, start.next)),
      batches_made_(start.batches),
      shuffle_epoch_(start.shuffle_epoch),
      shuffle_place_(start.shuffle_place),
      forced_batches_(start.pass_batches),
      batches_done_(start.batches_done) {
  CISTERN_CHECK(start.pass_batches == 0 || start.batches_done < start.pass_batches);
  CISTERN_CHECK(options.batchsize > 0 && options.streams > 0);
  CISTERN_CHECK(options.value_bytes.size() == options.shape.slot_nums.size());
}

PassSource::~PassSource() = default;

absl::StatusOr<std::unique_ptr<Pass>> PassSource::Next() {
  auto pass = std::make_unique<Pass>();
  pass->blocks = blocks_;
  pass->begin = Cursor();
  batch_bytes_ = 0;
  while (forced_batches_ > 0 || !AllMade()) {
    CISTERN_ASSIGN_OR_RETURN(const PassCoordinator::Claim claim,
                             coordinator_ == nullptr ? Claim() : AgreedClaim());
    if (claim.samples == 0) break;
    if (!Stage(claim, pass.get())) {
      if (pass->batches.empty() || forced_batches_ > 0) return TooLarge();
      break;
    }
    pending_ = false;
    ++batches_made_;
    pass->ends_epoch = samples_.ends_epoch;
    if (Ends(*pass)) break;
  }
  if (pass->batches.size() < forced_batches_) return CutShort(pass->batches.size());
  if (pass->batches.empty()) return nullptr;
  CISTERN_RETURN_IF_ERROR(Finish(pass.get()));
  if (options_.endless != nullptr) {
    pass->begin.next.slice = cursor_->slice();  // its samples were not known at its beginning
    pass->ends_epoch = false;
  }
  return pass;
}

bool PassSource::Ends(const Pass& pass) const {
  if (forced_batches_ > 0) return pass.batches.size() == forced_batches_;
  return pass.ends_epoch || (options_.cut_every > 0 && batches_made_ % options_.cut_every == 0) ||
         IsLongEnough(pass);
}

bool PassSource::IsLongEnough(const Pass& pass) const {
  if (options_.first_samples == 0 || options_.shuffle) return false;
  if (options_.batch_budget == 0 && wanted_.bytes >= PassTarget(wanted_.budget)) return true;
  // A pass is prepared while the one before it is trained: with 3, the device waited for it.
  constexpr uint64_t kGrowth = 2;
  const uint64_t first = (options_.first_samples + options_.batchsize - 1) / options_.batchsize;
  return pass.batches.size() >= std::max(first, kGrowth * pass.begin.batches);
}

PassCursor PassSource::Cursor() const {
  PassCursor at;
  at.next = pending_ ? pending_place_ : cursor_->place();
  at.batches = batches_made_;
  at.shuffle_epoch = shuffle_epoch_;
  at.shuffle_place = shuffle_place_;
  at.pass_batches = forced_batches_;
  at.batches_done = batches_done_;
  return at;
}

absl::StatusOr<PassCoordinator::Claim> PassSource::Claim() {
  if (!pending_) {
    pending_place_ = cursor_->place();
    CISTERN_ASSIGN_OR_RETURN(pending_, cursor_->Next(&samples_));
    if (!pending_) return PassCoordinator::Claim{};
  }
  CISTERN_RETURN_IF_ERROR(keys_->Add(samples_.block));
  const uint64_t batches = batch_bytes_ + PendingBytes();
  PassCoordinator::Claim claim = {samples_.all, KeyBytes(), options_.byte_budget};
  if (options_.batch_budget == 0) {
    claim.bytes += batches;
  } else {
    claim.batch_bytes = batches;
    claim.batch_budget = options_.batch_budget;
  }
  return claim;
}

absl::StatusOr<PassCoordinator::Claim> PassSource::AgreedClaim() {
  const absl::StatusOr<PassCoordinator::Claim> own = Claim();
  std::vector<absl::Span<const Key>> added(options_.value_bytes.size());
  for (size_t i = 0; i < added.size() && own.ok() && own->samples > 0; ++i) {
    added[i] = keys_->added(i);
  }
  return coordinator_->Agree(own, added);
}

bool PassSource::Stage(const PassCoordinator::Claim& claim, Pass* pass) {
  wanted_ = claim;
  if (!claim.Fits()) {
    keys_->Drop();
    if (coordinator_ != nullptr) coordinator_->Drop();
    return false;
  }
  if (pass->batches.empty()) pass->epoch = samples_.epoch;
  batch_bytes_ += PendingBytes();
  pass->samples += samples_.all;
  HostBatch& batch = pass->batches.emplace_back(keys_->Take(std::move(samples_.block)));
  batch.all = samples_.all;
  batch.first = samples_.first;
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    batch.sparse[i].slot_num = options_.shape.slot_nums[i];
  }
  return true;
}

size_t PassSource::PendingBytes() const {
  size_t bytes = BatchBytes(samples_.block, options_.segments);
  if (options_.parts == 1) return bytes;
  for (const SparseColumn& column : samples_.block.sparse)
    bytes += column.keys.size() * kExchangeBytes;
  return bytes;
}

absl::Status PassSource::Finish(Pass* pass) {
  if (pass->epoch != shuffle_epoch_) shuffle_place_ = 0;
  shuffle_epoch_ = pass->epoch;
  const uint64_t stream = uint64_t{shuffle_epoch_} << 32 | shuffle_place_++;
  if (options_.shuffle) ShuffleSamples(options_.shuffle_seed, stream, &pass->batches);
  DropDone(pass);
  forced_batches_ = batches_done_ = 0;
  pass->end = Cursor();
  pass->is_last = AllMade() || (!pending_ && cursor_->at_end());
  CISTERN_RETURN_IF_ERROR(keys_->Finish(pass));
  if (coordinator_ != nullptr) pass->owned = coordinator_->Take();
  if (!options_.segments || !keys_->wants_segments()) return absl::OkStatus();
  if (coordinator_ != nullptr) return absl::OkStatus();  // rows have no places yet
  BuildSegments(pass);
  return absl::OkStatus();
}

void PassSource::BuildSegments(Pass* pass) {
  // Batches that one builder sorts, so that it reuses its memory.
  constexpr size_t kAtOnce = 8;
  std::vector<HostBatch>& batches = pass->batches;
  threads_.ParallelFor((batches.size() + kAtOnce - 1) / kAtOnce, [&](size_t part) {
    SegmentBuilder segments;
    for (size_t b = part * kAtOnce; b < std::min(batches.size(), (part + 1) * kAtOnce); ++b) {
      segments.Build(&batches[b]);
    }
  });
}

void PassSource::DropDone(Pass* pass) {
  const auto first = pass->batches.begin();
  for (size_t i = 0; i < batches_done_; ++i) pass->samples -= first[i].all;
  pass->batches.erase(first, first + static_cast<ptrdiff_t>(batches_done_));
}

// With a coordinator, the owners hold and count the values; this worker counts only the index.
size_t PassSource::KeyBytes() const {
  size_t bytes = 0;
  for (size_t i = 0; i < options_.value_bytes.size(); ++i) {
    const size_t value_bytes = coordinator_ == nullptr ? options_.value_bytes[i] : 0;
    bytes += keys_->size(i) * (value_bytes + kKeyBytes);
  }
  return bytes;
}

absl::Status PassSource::CutShort(size_t batches) const {
  return absl::DataLossError(absl::StrCat("the run stopped inside a pass of ", forced_batches_,
                                          " batches, but only ", batches,
                                          " of them are left in the data: the data changed since "
                                          "the run stopped; restore it, or train from the start"));
}

absl::Status PassSource::TooLarge() const {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const bool of_rows = wanted_.bytes > wanted_.budget;
  const uint64_t bytes = of_rows ? wanted_.bytes : wanted_.batch_bytes;
  const uint64_t budget = of_rows ? wanted_.budget : wanted_.batch_budget;
  const bool on_device = of_rows && wanted_.batch_budget > 0;
  const char* option = on_device ? "cistern.device_memory_mb" : "cistern.pass_memory_mb";
  if (forced_batches_ > 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the run stopped inside a pass of ", forced_batches_,
                     " batches, which must be rebuilt with the same batches; it takes ", bytes,
                     " bytes or more, but the limit of a pass is ", budget, ": set ", option,
                     " to the value that it had"));
  }
  const std::string what = absl::StrCat("one batch of ", samples_.all, " samples takes ", bytes,
                                        of_rows ? " bytes with the rows of its keys" : " bytes",
                                        ", but the limit of a pass is ", budget);
  if (of_rows && options_.device_bound) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ", a quarter of the GPU memory left by the model: lower solver.batchsize"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(what, ": raise ", option, " to at least ",
                                                   (bytes + kMiB - 1) / kMiB,
                                                   ", or lower solver.batchsize"));
}

}  // namespace cistern::data
