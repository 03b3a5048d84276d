// A batch as the device sees it: rows of the pass table instead of keys. Everything that the train
// loop would otherwise have to search or sort was done while staging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/types.h"
#include "worker/data/source/pass_cursor.h"
#include "worker/data/source/pass_keys.h"

namespace cistern {

class DeviceKeys;  // worker/model/batch/device_keys.h

// One embedding input of a batch.
struct SparseBatch {
  uint32_t slot_num = 0;
  std::vector<uint32_t> offsets;  // [size * slot_num + 1], occurrences of (sample, slot)
  std::vector<Row> rows;          // [offsets.back()]
  // Where a GPU finds rows: keys [offsets.back()] instead, and who finds them. Then the segments
  // are made on the GPU, too, when the batch comes there.
  std::vector<Key> keys;
  std::shared_ptr<const DeviceKeys> finder;
  // The same of a batch that brings rows: a GPU makes the segments when it comes there.
  bool segments_there = false;
  // The same occurrences sorted by row, for a backward pass that adds in a fixed order: distinct
  // row segment_rows[i] occurs in outputs segment_outputs[segment_offsets[i] ..
  // segment_offsets[i + 1]), ascending; an output is sample * slot_num + slot.
  std::vector<Row> segment_rows;          // [distinct], ascending
  std::vector<uint32_t> segment_offsets;  // [distinct + 1]
  std::vector<uint32_t> segment_outputs;  // [offsets.back()]
};

// Where several workers train, each holds a share of a pass's rows, and of every batch reads what
// the others hold. What of one input goes where is known before the batch is trained
// (worker/pass/shared_pass.h). By worker; its own rows go the same way.
struct ExchangedRows {
  // Rows that each gives to this one. They lie one behind the other, and SparseBatch::rows and
  // segment_rows count in them.
  std::vector<uint32_t> taken;
  std::vector<uint32_t> given;  // rows of the pass table that this one gives to each
  // The rows that are given: output i is rows[i] alone. Its segments say which rows of the pass
  // table the batch, of all workers, reads, and which of the given ones each of them is.
  SparseBatch served;
  // Ctr: what of these segments CtrUpdate has to know of the samples of all workers, each
  // occurrence as click * slot_num + slot: segment i is occurrences[occurrence_offsets[i] ..
  // occurrence_offsets[i + 1]).
  std::vector<uint32_t> occurrence_offsets, occurrences;
};

struct Batch {
  size_t size = 0;
  // With the samples of other workers, and how many of them come before these.
  size_t all = 0, first = 0;
  std::vector<float> label;              // [size, label_dim]
  std::vector<float> dense;              // [size, dense_dim]
  std::vector<SparseBatch> sparse;       // by input
  std::vector<ExchangedRows> exchanged;  // by input; empty where this worker is alone
};

// Distinct keys of one input of a pass that one of several workers owns.
struct OwnedKeys {
  KeyIndex keys;
  // By worker: the rows here of the keys that its part of the pass has, in the order in which it
  // came upon them.
  std::vector<std::vector<Row>> asked;
};

// Distinct keys of one input of a pass that a GPU has collected for one of several workers. Until
// the workers have exchanged their rows, the rows of a batch count in its segment_rows, and these
// are places among all keys here, ordered by mixed key (common/base/hash.h). So the keys of each
// owner lie side by side.
struct CollectedKeys {
  std::vector<Key> keys;    // in the order in which their owners learned of them
  std::vector<Row> places;  // of each of them
};

// A pass: its batches, and the distinct keys whose rows they index.
struct Pass {
  size_t samples = 0;          // of all workers
  uint32_t epoch = 0;          // 0, 1, ...: of the data, of the first sample
  bool ends_epoch = false;     // the last batch is the last of its epoch
  bool is_last = false;        // no pass follows
  std::vector<PassKeys> keys;  // by input: row r of the pass table holds the value of keys()[r]
  // By input, of several workers, until they exchange rows; the second where a GPU has collected,
  // and then `keys` are empty so long.
  std::vector<OwnedKeys> owned;
  std::vector<CollectedKeys> collected;
  std::vector<Batch> batches;
  PassCursor begin, end;  // where it was made from, and what is to follow it

  // Where a run stands that has trained the first `trained` batches of this pass.
  PassCursor CursorAfter(size_t trained) const {
    if (trained == batches.size()) return end;
    PassCursor inside = begin;
    inside.pass_batches = begin.batches_done + batches.size();
    inside.batches_done = begin.batches_done + trained;
    return inside;
  }
};

}  // namespace cistern
