// Cuts a data set into passes whose rows and batches fit a memory budget.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/source/batch.h"
#include "worker/data/source/key_collector.h"

namespace cistern {

struct PassOptions {
  SampleShape shape;
  size_t batchsize = 1;
  // Of `parts` workers this is the part-th: its samples of a batch lie side by side.
  uint32_t part = 0, parts = 1;
  // Either: this many batches in all, going around the data as often as needed, each batch full
  // (a batch may hold the end of one epoch and the start of the next). 0: by epochs.
  size_t max_batches = 0;
  // Or: this many epochs, the last batch of each as short as it must be.
  uint32_t num_epochs = 1;
  // With max_batches: stop at the end of the data instead of going around (evaluation).
  bool repeat = true;
  // Samples are drawn in an order that is a pure function of (seed, epoch, place in the pass);
  // within one pass, so a pass that holds the whole data set is shuffled whole. false: file order.
  bool shuffle = false;
  uint64_t shuffle_seed = 0;
  // A pass also ends where the number of batches made so far is a multiple of this, e.g. of the
  // interval of evaluations; 0: no such cut.
  size_t cut_every = 0;
  bool segments = true;  // false: leave the segment_* arrays empty (evaluation)
  // Bytes that a pass may take: value_bytes[i] for each distinct key of input i, and the batches.
  size_t byte_budget = size_t{1} << 30;
  // The device has not the memory for more: a larger cistern.pass_memory_mb would not help.
  bool device_bound = false;
  std::vector<size_t> value_bytes;
};

// The workers of a run make their passes side by side: of each batch every one takes its part of
// the samples, and a pass ends for all of them with the same batch. Every key of a pass is owned by
// one of them, who learns of it here, so that they know what the pass takes: this is what one asks
// of the others before it adds a batch.
class PassCoordinator {
 public:
  // The next batch as one worker sees it; `samples` 0: there is none.
  struct Claim {
    uint64_t samples = 0;  // of all workers
    uint64_t bytes = 0;    // that the pass takes of the worker's memory with it
    uint64_t budget = 0;   // what it may take
  };
  virtual ~PassCoordinator() = default;
  // own: without the values of keys; an error is that of all. keys: those that the batch brings to
  // this worker's part of the pass, by input. Returns what the pass takes of the worker whose
  // memory is shortest, values of the keys that it owns included: the same for all, or the same
  // error.
  virtual absl::StatusOr<Claim> Agree(const absl::StatusOr<Claim>& own,
                                      absl::Span<const absl::Span<const Key>> keys) = 0;
  // The batch that was agreed on last is not of the pass, and its keys are not.
  virtual void Drop() = 0;
  // Ends the pass: the keys that this worker owns, by input.
  virtual std::vector<OwnedKeys> Take() = 0;
};

// What a distinct key takes beside its value: the key, and its share of the index at the worst
// load. (On a GPU the same: a key here and there, and its share of the index.)
inline constexpr size_t kKeyBytes = 24;

// Threads: one at a time.
class PassSource {
 public:
  using OpenReader = std::function<absl::StatusOr<std::unique_ptr<SampleReader>>()>;
  // open: opens the data from its start; called once per epoch.
  // start: the `begin` or `end` of a pass, or its CursorAfter, of a source with the same options
  // and data: the passes from there on are made as that one would have made them. Of a pass that
  // the cursor stands inside, the batches that are done are left out.
  // keys: who collects them; null: the host. coordinator: where there are several parts; used by
  // the thread that calls Next.
  PassSource(const PassOptions& options, OpenReader open, const PassCursor& start = {},
             std::unique_ptr<KeyCollector> keys = nullptr,
             std::unique_ptr<PassCoordinator> coordinator = nullptr);
  ~PassSource();

  // The next pass; null when all were made. A pass holds whole batches, as many as fit the budget,
  // and ends with the batch that holds the last sample of an epoch. kResourceExhausted if one batch
  // alone does not fit: names the bytes it wants and the knob (cistern.pass_memory_mb). Errors of
  // the reader pass through, and come again from the next call; data without a sample, or that
  // ends before the start, is kDataLoss.
  absl::StatusOr<std::unique_ptr<Pass>> Next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cistern
