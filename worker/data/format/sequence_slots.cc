#include "worker/data/format/sequence_slots.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cistern::data {
namespace {

uint32_t LengthOf(const SequenceSlots& sequences, uint32_t slot) {
  return sequences.any() ? sequences.lengths[slot] : 0;
}

class PlacesReader : public SampleReader {
 public:
  PlacesReader(std::unique_ptr<SampleReader> reader, const std::vector<SequenceSlots>& sequences,
               const std::vector<uint32_t>& slot_nums)
      : reader_(std::move(reader)), sequences_(sequences), slot_nums_(slot_nums) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    slots_.Reset(slot_nums_.size());
    const absl::StatusOr<size_t> got = reader_->Read(max_samples, &slots_);
    block->size += slots_.size;  // after an error, too: the samples before it
    block->label.insert(block->label.end(), slots_.label.begin(), slots_.label.end());
    block->dense.insert(block->dense.end(), slots_.dense.begin(), slots_.dense.end());
    for (size_t i = 0; i < slot_nums_.size(); ++i) {
      const SparseColumn& column = slots_.sparse[i];
      AppendPlaces(sequences_[i], slot_nums_[i], column.offsets, column.keys, column.weights,
                   &block->sparse[i]);
    }
    return got;
  }
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    slots_.Reset(slot_nums_.size());
    return reader_->Skip(max_samples, &slots_);
  }
  std::optional<uint64_t> Samples() const override { return reader_->Samples(); }
  std::string PlaceOf(uint64_t sample) const override { return reader_->PlaceOf(sample); }

 private:
  const std::unique_ptr<SampleReader> reader_;
  const std::vector<SequenceSlots> sequences_;
  const std::vector<uint32_t> slot_nums_;
  SampleBlock slots_;
};

}  // namespace

uint64_t PlacesOf(const SequenceSlots& sequences, uint32_t slots) {
  if (!sequences.any()) return slots;
  uint64_t places = 0;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    places += std::max(sequences.lengths[slot], 1u);
  }
  return places;
}

SlotPlaces PlacesOfSlot(const SequenceSlots& sequences, uint32_t slot) {
  return {static_cast<uint32_t>(PlacesOf(sequences, slot)),
          std::max(LengthOf(sequences, slot), 1u)};
}

void AppendPlaces(const SequenceSlots& sequences, uint32_t slots,
                  absl::Span<const uint32_t> offsets, absl::Span<const Key> keys,
                  absl::Span<const float> weights, SparseColumn* places) {
  CISTERN_CHECK(!sequences.any() || sequences.lengths.size() == slots);
  const auto append = [places, keys, weights](uint32_t first, uint32_t end) {
    places->keys.insert(places->keys.end(), keys.begin() + first, keys.begin() + end);
    if (weights.empty()) return;
    places->weights.insert(places->weights.end(), weights.begin() + first, weights.begin() + end);
  };
  for (size_t k = 0; k + 1 < offsets.size(); ++k) {
    const uint32_t length = LengthOf(sequences, static_cast<uint32_t>(k % slots));
    uint32_t first = offsets[k], end = offsets[k + 1];
    if (length == 0) {
      append(first, end);
      places->offsets.push_back(static_cast<uint32_t>(places->keys.size()));
      continue;
    }
    if (end - first > length) {
      if (sequences.keeps_last) first = end - length;
      end = first + length;
    }
    const auto filled = static_cast<uint32_t>(places->keys.size());
    append(first, end);
    if (sequences.reversed) {
      std::reverse(places->keys.begin() + filled, places->keys.end());
      if (!weights.empty()) std::reverse(places->weights.begin() + filled, places->weights.end());
    }
    for (uint32_t place = 1; place <= length; ++place) {
      places->offsets.push_back(filled + std::min(place, end - first));
    }
  }
}

std::unique_ptr<SampleReader> WithPlaces(std::unique_ptr<SampleReader> reader,
                                         const std::vector<SequenceSlots>& sequences,
                                         const std::vector<uint32_t>& slot_nums) {
  CISTERN_CHECK(sequences.size() == slot_nums.size());
  if (std::none_of(sequences.begin(), sequences.end(),
                   [](const SequenceSlots& one) { return one.any(); })) {
    return reader;
  }
  return std::make_unique<PlacesReader>(std::move(reader), sequences, slot_nums);
}

}  // namespace cistern::data
