// slot_size_array: how many keys each slot has, and the offset of its first key among all keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern::data {

// In the Raw and Parquet formats, each slot numbers its keys 0, 1, 2, ...; a key of slot s becomes
// key + the sum of the sizes of the slots before s, so that slots do not share keys. A slot of size
// 0 shares the keys of the next slot with a size, as in HugeCTR: [50, 0, 0, 40] is one user and
// three items. Without sizes, keys are neither offset nor checked.
//
// Threads: any; immutable.
class SlotSizes {
 public:
  SlotSizes() = default;
  // shape: with slots of weights (ShapeInFiles) or without; those are neither offset nor checked.
  // sizes: empty, or one size per slot, over all inputs in order. kInvalidArgument: the number of
  // sizes differs from the number of slots, the last size is 0, or the sum does not fit 63 bits.
  static absl::StatusOr<SlotSizes> Create(const SampleShape& shape,
                                          const std::vector<uint64_t>& sizes);

  // The offset added to the keys of a slot. Slots are numbered over all inputs.
  Key offset(size_t slot) const { return slot < starts_.size() ? starts_[slot] : 0; }
  // Keys of the slot, before the offset, are below this.
  Key size(size_t slot) const { return slot < sizes_.size() ? sizes_[slot] : kReservedKey64; }
  // The error message for a bad key: "key 12 is outside [0, 10) that slot_size_array[3] allows:
  // ..."
  std::string Refusal(size_t slot, int64_t key) const;

 private:
  std::vector<Key> starts_, sizes_;  // [slots of keys]; empty: no sizes
};

}  // namespace cistern::data
