#include "worker/data/format/slot_sizes.h"

#include "worker/data/format/key_weights.h"

namespace cistern::data {

absl::StatusOr<SlotSizes> SlotSizes::Create(const SampleShape& shape,
                                            const std::vector<uint64_t>& sizes) {
  SlotSizes result;
  if (sizes.empty()) return result;
  const uint64_t slots = KeySlots(shape);
  if (sizes.size() != slots) {
    return absl::InvalidArgumentError(absl::StrCat("slot_size_array has ", sizes.size(),
                                                   " sizes, but the sparse inputs have ", slots,
                                                   " slots together: give one size for each slot"));
  }
  if (sizes.back() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "slot_size_array[", sizes.size() - 1,
        "] is 0: a slot of size 0 shares the keys of the slot that follows, and none follows"));
  }
  Key start = 0;
  for (size_t slot = 0; slot < sizes.size(); ++slot) {
    if (sizes[slot] > kReservedKey64 - start) {
      return absl::InvalidArgumentError(
          absl::StrCat("slot_size_array[", slot, "]: the sizes sum to more than 2^63 - 1 keys"));
    }
    result.starts_.push_back(start);
    start += sizes[slot];
  }
  result.sizes_ = sizes;
  for (size_t slot = sizes.size() - 1; slot-- > 0;) {
    if (sizes[slot] == 0) result.sizes_[slot] = result.sizes_[slot + 1];
  }
  return result;
}

std::string SlotSizes::Refusal(size_t slot, int64_t key) const {
  if (starts_.empty()) {
    return absl::StrCat("key ", key, " is outside [0, ", kReservedKey64, ")");
  }
  return absl::StrCat("key ", key, " is outside [0, ", size(slot), ") that slot_size_array[", slot,
                      "] allows: raise that size, or number the slot's keys from 0 without gaps");
}

}  // namespace cistern::data
