#include "worker/data/format/key_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace cistern::data {
namespace {

// Threads: one at a time.
class KeyWeightReader : public SampleReader {
 public:
  KeyWeightReader(std::unique_ptr<SampleReader> reader, const SampleShape& shape)
      : reader_(std::move(reader)),
        shape_(shape),
        stored_inputs_(ShapeInFiles(shape).slot_nums.size()) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    stored_.Reset(stored_inputs_);
    const absl::StatusOr<size_t> got = reader_->Read(max_samples, &stored_);
    const absl::Status moved = MoveWeights();
    block->Append(stored_, 0, stored_.size);
    samples_ += stored_.size;
    CISTERN_RETURN_IF_ERROR(moved);
    return got;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    stored_.Reset(stored_inputs_);
    CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader_->Skip(max_samples, &stored_));
    samples_ += skipped;
    return skipped;
  }

  std::optional<uint64_t> Samples() const override { return reader_->Samples(); }
  std::string PlaceOf(uint64_t sample) const override { return reader_->PlaceOf(sample); }

 private:
  // Moves the weights of stored_ beside their keys. On error only the samples before it remain.
  absl::Status MoveWeights() {
    absl::Status first;
    size_t good = stored_.size, from = shape_.slot_nums.size();
    for (size_t input = 0; input < shape_.slot_nums.size(); ++input) {
      if (!shape_.key_weights[input]) continue;
      SparseColumn& keys = stored_.sparse[input];
      keys.weights.assign(keys.keys.size(), 1.0f);
      const absl::Status moved = MoveInput(stored_.sparse[from++], input, good, &keys);
      if (moved.ok()) continue;
      good = bad_;
      first = moved;
    }
    stored_.sparse.resize(shape_.slot_nums.size());
    stored_.Truncate(good);
    return first;
  }

  // Moves those of the first `samples` samples of one input. bad_: the sample of the error.
  absl::Status MoveInput(const SparseColumn& stored, size_t input, size_t samples,
                         SparseColumn* column) {
    const size_t slots = shape_.slot_nums[input];
    for (size_t output = 0; output < samples * slots; ++output) {
      const uint32_t begin = stored.offsets[output], count = stored.offsets[output + 1] - begin;
      const uint32_t to = column->offsets[output], keys = column->offsets[output + 1] - to;
      if (count == 0) continue;
      bad_ = output / slots;
      const auto refuse = [&](const std::string& why) {
        return absl::DataLossError(absl::StrCat(reader_->PlaceOf(samples_ + bad_), ": slot ",
                                                output % slots, " of input ", input, ": ", why,
                                                ": the file is corrupt, or its slots are not those "
                                                "of this model (cistern.key_weights)"));
      };
      if (count != keys) return refuse(absl::StrCat(keys, " keys have ", count, " weights"));
      for (uint32_t k = 0; k < count; ++k) {
        const Key bits = stored.keys[begin + k];
        const auto weight = std::bit_cast<float>(static_cast<uint32_t>(bits));
        if (bits > std::numeric_limits<uint32_t>::max() || !std::isfinite(weight)) {
          return refuse(absl::StrCat("weight ", k, " is not a finite float"));
        }
        column->weights[to + k] = weight;
      }
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<SampleReader> reader_;
  const SampleShape shape_;
  const size_t stored_inputs_;
  SampleBlock stored_;
  size_t bad_ = 0;
  uint64_t samples_ = 0;  // read or skipped so far
};

}  // namespace

bool HasKeyWeights(const SampleShape& shape) {
  return std::find(shape.key_weights.begin(), shape.key_weights.end(), true) !=
         shape.key_weights.end();
}

SampleShape ShapeInFiles(const SampleShape& shape) {
  SampleShape stored = shape;
  stored.max_keys.resize(shape.slot_nums.size(), 0);
  for (size_t input = 0; input < shape.key_weights.size(); ++input) {
    if (!shape.key_weights[input]) continue;
    stored.slot_nums.push_back(shape.slot_nums[input]);
    stored.max_keys.push_back(stored.max_keys[input]);
  }
  if (shape.max_keys.empty()) stored.max_keys.clear();
  return stored;
}

uint64_t KeySlots(const SampleShape& stored) {
  uint64_t slots = 0;
  const size_t inputs =
      stored.key_weights.empty() ? stored.slot_nums.size() : stored.key_weights.size();
  for (size_t input = 0; input < inputs; ++input) slots += stored.slot_nums[input];
  return slots;
}

uint64_t WeightSlots(const SampleShape& shape) {
  uint64_t slots = 0;
  for (size_t input = 0; input < shape.key_weights.size(); ++input) {
    if (shape.key_weights[input]) slots += shape.slot_nums[input];
  }
  return slots;
}

bool AreAllOne(absl::Span<const float> weights) {
  return std::all_of(weights.begin(), weights.end(), [](float weight) { return weight == 1.0f; });
}

std::unique_ptr<SampleReader> OpenWithKeyWeights(std::unique_ptr<SampleReader> reader,
                                                 const SampleShape& shape) {
  return std::make_unique<KeyWeightReader>(std::move(reader), shape);
}

}  // namespace cistern::data
