// Passes and batches in host memory. A batch holds rows of the pass table instead of keys, and
// occurrences sorted by row, so the training loop neither searches nor sorts. A GPU can do both
// itself when a batch arrives there (HostSparseBatch::keys, segments_there).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/types.h"
#include "worker/data/source/pass_cursor.h"
#include "worker/data/source/pass_keys.h"

namespace cistern::model {
class DeviceKeys;  // worker/model/batch/device_keys.h
}  // namespace cistern::model

namespace cistern::data {

class BlockPool;  // worker/data/source/block_pool.h

// One embedding input of a batch.
struct HostSparseBatch {
  uint32_t slot_num = 0;
  std::vector<uint32_t> offsets;  // [size * slot_num + 1], into rows, by (sample, slot)
  std::vector<Row> rows;          // [offsets.back()]
  // If a GPU looks up the rows: keys [offsets.back()] instead of `rows`, and the object that looks
  // them up. The GPU then also builds the segments when the batch arrives there.
  std::vector<Key> keys;
  std::shared_ptr<const model::DeviceKeys> finder;
  // For a batch with `rows`: a GPU builds the segments when the batch arrives there.
  bool segments_there = false;
  // The occurrences sorted by row, so that the backward pass adds in a fixed order. Distinct row
  // segment_rows[i] occurs in the outputs
  // segment_outputs[segment_offsets[i] .. segment_offsets[i + 1]), ascending. An output is
  // sample * slot_num + slot.
  std::vector<Row> segment_rows;          // [distinct], ascending
  std::vector<uint32_t> segment_offsets;  // [distinct + 1]
  std::vector<uint32_t> segment_outputs;  // [offsets.back()]
  // If the keys have weights: that of each occurrence, [offsets.back()], and the same divided by
  // the sum of those of its output (0 if that is 0), for combiners that sum and that average.
  // segment_places: by occurrence in the segments, its place among `rows`. Else empty.
  std::vector<float> weights, shares;
  std::vector<uint32_t> segment_places;
};

// The rows of one input that workers exchange for a batch. Each of several workers owns a share of
// a pass's rows, and its samples also read rows of other owners. The exchange is planned before the
// batch is trained (worker/pass/shared_pass.h). A worker's own rows take the same path.
struct HostExchange {
  // By worker: the number of rows that it sends to this one. Received rows are stored back to back;
  // HostSparseBatch::rows and segment_rows index into them.
  std::vector<uint32_t> taken;
  std::vector<uint32_t> given;  // by worker: the number of rows that it gets from this one
  // The rows to send: output i is rows[i] alone. Its segments list the rows of the pass table that
  // the samples of all workers read, and the positions of each among the rows to send.
  HostSparseBatch served;
  // Ctr: what CtrUpdate needs about the samples of all workers. Segment i of `served` has
  // occurrences[occurrence_offsets[i] .. occurrence_offsets[i + 1]), each encoded as
  // click * slot_num + slot.
  std::vector<uint32_t> occurrence_offsets, occurrences;
};

// Tells one batch from another, also from an earlier one at the same address: a copy gets a number
// of its own, and a move takes the number along.
class BatchNumber {
 public:
  BatchNumber() : number_(Next()) {}
  BatchNumber(const BatchNumber&) : number_(Next()) {}
  BatchNumber(BatchNumber&& other) noexcept : number_(std::exchange(other.number_, Next())) {}
  BatchNumber& operator=(const BatchNumber&) {
    number_ = Next();
    return *this;
  }
  BatchNumber& operator=(BatchNumber&& other) noexcept {
    number_ = std::exchange(other.number_, Next());
    return *this;
  }
  bool operator==(const BatchNumber& other) const { return number_ == other.number_; }
  uint64_t value() const { return number_; }

 private:
  static uint64_t Next() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
  uint64_t number_;
};

// One worker's samples of a batch. worker/model/batch/batch_stage.h copies them to the device.
struct HostBatch {
  BatchNumber number;
  size_t size = 0;  // samples of this worker
  // all: samples of all workers; first: how many of them come before this worker's samples.
  size_t all = 0, first = 0;
  std::vector<float> label;  // [size, label_dim]
  // [size], or empty: every weight is 1. Those of a batch to train are scaled to a mean of 1 over
  // the samples of all workers (worker/pass/sample_weights.h).
  std::vector<float> weight;
  std::vector<float> dense;             // [size, dense_dim]
  std::vector<HostSparseBatch> sparse;  // by input
  std::vector<HostExchange> exchanged;  // by input; empty for a single worker
};

// The distinct keys of one input of a pass that this worker owns, one of several.
struct OwnedKeys {
  KeyIndex keys;
  // By worker: the rows (in `keys`) of the keys in its part of the pass, in the order in which that
  // worker first met them.
  std::vector<std::vector<Row>> asked;
};

// The distinct keys of one input of a pass that a GPU has collected for one of several workers.
// Until the workers have exchanged rows, the rows of a batch are indices into its segment_rows,
// which in turn are places among all keys here in the order of mixed keys (common/base/hash.h). In
// that order, the keys of each owner are adjacent.
struct CollectedKeys {
  std::vector<Key> keys;    // in the order in which their owners learned of them
  std::vector<Row> places;  // of each key
};

// A pass: its batches, and the distinct keys whose rows they index.
struct Pass {
  size_t samples = 0;          // of all workers
  uint32_t epoch = 0;          // data epoch of the first sample: 0, 1, ...
  bool ends_epoch = false;     // the last batch is also the last of its epoch
  bool is_last = false;        // no pass follows
  std::vector<PassKeys> keys;  // by input: row r of the pass table holds the value of keys()[r]
  // By input, with several workers, until they exchange rows. `collected` is for keys that a GPU
  // has collected; `keys` is then empty until the exchange.
  std::vector<OwnedKeys> owned;
  std::vector<CollectedKeys> collected;
  std::vector<HostBatch> batches;
  std::shared_ptr<BlockPool> blocks;  // takes the memory of `batches`; may be null
  PassCursor begin, end;              // the cursor before this pass, and the one after it

  // The cursor of a run that has trained the first `trained` batches of this pass.
  PassCursor CursorAfter(size_t trained) const {
    if (trained == batches.size()) return end;
    PassCursor inside = begin;
    inside.pass_batches = begin.batches_done + batches.size();
    inside.batches_done = begin.batches_done + trained;
    return inside;
  }
};

}  // namespace cistern::data
