// Slots that are sequences: their keys are not summed, each has a place, and so an embedding row,
// of its own.
//
// Files, requests and recipes know slots. Batches know places: a slot that is no sequence is one
// place, a sequence of length n is n places with one key or none. Training and evaluation change
// from one to the other where they read samples, predictions where they take requests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// The sequences of one sparse input.
struct SequenceSlots {
  // By slot: how many keys of a sample have a place; 0: the slot is no sequence. Empty: no slot is.
  std::vector<uint32_t> lengths;
  // Of a sample that has more keys, the last ones have a place; else the first ones.
  bool keeps_last = true;
  // The last of the kept keys has the first place.
  bool reversed = false;

  bool any() const { return !lengths.empty(); }
};

// The places of `slots` slots; of all slots of an input, or of those before one.
uint64_t PlacesOf(const SequenceSlots& sequences, uint32_t slots);

// The places that a slot has in a batch.
struct SlotPlaces {
  uint32_t first = 0, count = 1;
};
SlotPlaces PlacesOfSlot(const SequenceSlots& sequences, uint32_t slot);

// Appends samples to `places`, whose offsets are by (sample, place). The keys of a sequence fill
// its places from the first on. offsets: [samples * slots + 1], by (sample, slot), into keys, and
// into weights if that is not empty.
void AppendPlaces(const SequenceSlots& sequences, uint32_t slots,
                  absl::Span<const uint32_t> offsets, absl::Span<const Key> keys,
                  absl::Span<const float> weights, SparseColumn* places);

// The samples of `reader` with places instead of slots. sequences: by input. slot_nums: those of
// `reader`. Returns `reader` itself if no input has sequences.
std::unique_ptr<SampleReader> WithPlaces(std::unique_ptr<SampleReader> reader,
                                         const std::vector<SequenceSlots>& sequences,
                                         const std::vector<uint32_t>& slot_nums);

}  // namespace cistern::data
