// What slot_size_array says: how many keys each slot has, and where they begin among all keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern {

// In the Raw and Parquet formats each slot numbers its keys 0, 1, 2, ...; a key of slot s becomes
// key + the sizes of the slots before s, so that slots do not share keys. Without sizes nothing is
// added and nothing is checked.
//
// Threads: any; it does not change.
class SlotSizes {
 public:
  SlotSizes() = default;
  // sizes: empty, or one a slot, all inputs one after the other. kInvalidArgument: another number
  // of them, a size of 0, or more keys in all than 63 bits hold.
  static absl::StatusOr<SlotSizes> Create(const SampleShape& shape,
                                          const std::vector<uint64_t>& sizes);

  // What is added to the keys of a slot, counted over all inputs.
  Key offset(size_t slot) const { return starts_.empty() ? 0 : starts_[slot]; }
  // Keys of the slot lie below this.
  Key size(size_t slot) const {
    return starts_.empty() ? kReservedKey64 : starts_[slot + 1] - starts_[slot];
  }
  // "key 12 is outside [0, 10) that slot_size_array[3] allows: ..."
  std::string Refusal(size_t slot, int64_t key) const;

 private:
  std::vector<Key> starts_;  // [slots + 1]; empty: no sizes
};

}  // namespace cistern
