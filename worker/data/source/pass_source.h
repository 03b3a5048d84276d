// Cuts a data set into passes whose rows and batches fit a memory budget.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/source/batch.h"
#include "worker/data/source/batch_cursor.h"
#include "worker/data/source/block_pool.h"
#include "worker/data/source/epoch_source.h"
#include "worker/data/source/key_collector.h"

namespace cistern::data {

struct PassOptions {
  SampleShape shape;
  size_t batchsize = 1;
  // This is worker `part` of `parts`. It takes a contiguous range of the samples of each batch.
  uint32_t part = 0, parts = 1;
  // The streams that the data is divided into (stream_cursor.h). 1: in the order of the files; all
  // workers read the whole data and skip what others take.
  uint32_t streams = 1;
  // Either this many full batches in total, cycling through the data as often as needed; a batch
  // can hold the end of one epoch and the start of the next. 0: use num_epochs.
  size_t max_batches = 0;
  // Or this many epochs. The last batch of an epoch can be short.
  uint32_t num_epochs = 1;
  // Data that never ends: begins its epochs, which end passes and are not counted. num_epochs has
  // no meaning then, and the last batch of an epoch can be short. Null: files.
  std::shared_ptr<EpochSource> endless;
  // With max_batches: false stops at the end of the data instead of cycling (evaluation).
  bool repeat = true;
  // Shuffles the samples within each pass, as a pure function of the seed, the epoch and the number
  // of the pass in it. A pass that holds the whole data set shuffles all of it. false: file order.
  bool shuffle = false;
  uint64_t shuffle_seed = 0;
  // Also ends a pass when the number of batches made so far is a multiple of this, for example the
  // evaluation interval; 0: never.
  size_t cut_every = 0;
  // The first passes of a run are short, so that training starts soon: a pass holds at most this
  // many samples, or twice as many as all passes before it if that is more. A function of the
  // cursor, so a resumed run makes the same passes. 0: no such limit. Shuffled runs have none.
  size_t first_samples = 0;
  // Threads that sort the occurrences of a pass, and decode streams. The result does not depend on
  // their number.
  int threads = 1;
  // Reads the next batches while the current one is added to its pass: of one worker, or of data in
  // one stream, and only from data that ends.
  bool read_ahead = false;
  bool segments = true;  // false: leave the segment_* arrays empty (evaluation)
  // Memory limit of a pass: value_bytes[i] for each distinct key of input i, plus the batches.
  size_t byte_budget = size_t{1} << 30;
  // On a GPU, rows and batches are in different memory: this limits the batches of this worker, and
  // byte_budget the rows alone. 0: one memory for both.
  size_t batch_budget = 0;
  // The device memory sets byte_budget; a larger value in the configuration does not help.
  bool device_bound = false;
  std::vector<size_t> value_bytes;
};

// Coordinates the passes of several workers. Each worker takes its part of the samples of every
// batch, and a pass ends with the same batch on all workers. One worker owns each key of a pass. A
// worker calls Agree before it adds a batch: its new keys go to their owners, and all workers learn
// how much memory the pass needs.
class PassCoordinator {
 public:
  // The next batch from the view of one worker; `samples` is 0 if there is no next batch.
  struct Claim {
    uint64_t samples = 0;  // of all workers
    uint64_t bytes = 0;    // memory of this worker that the pass needs with the batch
    uint64_t budget = 0;   // the limit of `bytes`
    // With PassOptions::batch_budget: bytes of the batches, not in `bytes`, and their limit. Else
    // 0.
    uint64_t batch_bytes = 0, batch_budget = 0;

    bool Fits() const { return bytes <= budget && batch_bytes <= batch_budget; }
  };
  virtual ~PassCoordinator() = default;
  // Returns the numbers that each worker passes, by rank; an error becomes the error of all
  // workers.
  virtual absl::StatusOr<std::vector<std::vector<uint64_t>>> Share(
      const absl::StatusOr<std::vector<uint64_t>>& own) = 0;
  // own: this worker's claim, without the values of keys; an error becomes the error of all
  // workers. keys: by input, the keys that the batch adds to this worker's part of the pass.
  // Returns the claim of the worker with the least memory left, including the values of the keys
  // that it owns, and likewise for the batches. All workers get the same result or the same error.
  virtual absl::StatusOr<Claim> Agree(const absl::StatusOr<Claim>& own,
                                      absl::Span<const absl::Span<const Key>> keys) = 0;
  // Removes the last agreed batch and its keys from the pass.
  virtual void Drop() = 0;
  // Ends the pass. Returns the keys that this worker owns, by input.
  virtual std::vector<OwnedKeys> Take() = 0;
};

// A pass that is not shuffled ends once it takes this much of `budget`, PassOptions::byte_budget,
// where that limits rows and batches together. Smaller passes are prepared and committed beside
// each other with fewer waits, and touch less new memory; still smaller ones would move the rows
// that most passes share too often. (docs/measurements has the figures.)
inline constexpr uint64_t PassTarget(uint64_t budget) {
  return budget / 8 * 5;
}

// Bytes of a distinct key besides its value: the key, and its share of the index at the lowest load
// factor. The same on a GPU: the key on host and device, and its share of the index.
inline constexpr size_t kKeyBytes = 24;

// Threads: one at a time.
class PassSource {
 public:
  using OpenStream =
      std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(uint32_t epoch, uint32_t stream)>;
  using OpenReader = std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(uint32_t epoch)>;
  // open: opens a stream (0, 1, ... options.streams - 1) of an epoch (0, 1, ...) at its start.
  // start: the `begin`, `end` or CursorAfter of a pass from a source with the same options and
  // data. This source then makes the same passes as that source from there on. If the cursor is
  // inside a pass, that pass omits the trained batches.
  // keys: collects the keys; null: the host does.
  // coordinator: required for several parts; called on the thread that calls Next.
  PassSource(const PassOptions& options, OpenStream open, const PassCursor& start = {},
             std::unique_ptr<KeyCollector> keys = nullptr,
             std::unique_ptr<PassCoordinator> coordinator = nullptr);
  // The same for data in one stream.
  PassSource(const PassOptions& options, OpenReader open, const PassCursor& start = {},
             std::unique_ptr<KeyCollector> keys = nullptr,
             std::unique_ptr<PassCoordinator> coordinator = nullptr);
  ~PassSource();

  // Returns the next pass, or null after the last one. A pass holds as many whole batches as fit
  // the budget, and ends with the batch that holds the last sample of an epoch. kResourceExhausted:
  // a single batch does not fit; the message names the bytes it needs and the option to change
  // (cistern.pass_memory_mb). kDataLoss: the data has no samples, or ends before `start`. Passes
  // errors of the reader through. An error ends the source: do not call Next again.
  absl::StatusOr<std::unique_ptr<Pass>> Next();

 private:
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
    return (options_.max_batches > 0 && batches_made_ >= options_.max_batches) ||
           (options_.max_batches == 0 && options_.num_epochs == 0 && options_.endless == nullptr);
  }

  const PassOptions options_;
  ThreadPool threads_;
  const std::unique_ptr<PassCoordinator> coordinator_;
  const std::unique_ptr<KeyCollector> keys_;
  const std::shared_ptr<BlockPool> blocks_;  // null if memory does not come back
  const std::unique_ptr<BatchCursor> cursor_;
  BatchSamples samples_;  // of the next batch, if pending
  bool pending_ = false;
  DataPlace pending_place_;  // where the pending batch begins
  uint64_t batches_made_;
  size_t batch_bytes_ = 0;                  // batches of the current pass
  PassCoordinator::Claim wanted_;           // of the last staged or refused batch
  uint32_t shuffle_epoch_, shuffle_place_;  // an epoch; passes shuffled so far that begin in it
  uint64_t forced_batches_, batches_done_;  // of the first pass if the start is inside it; else 0
};

}  // namespace cistern::data
