#include "worker/model/layer/sequence_lengths_layer.h"

#include <algorithm>

#include "cuda/op/embedding/sequence_lengths.h"

namespace cistern::model {
namespace {

class SequenceLengthsLayer : public Layer {
 public:
  SequenceLengthsLayer(const SparseInputConfig& input, size_t index, Tensor* out)
      : Layer({}, {out}), index_(index), places_(input.places()) {
    for (uint32_t slot = 0; slot < input.slot_num; ++slot) {
      if (input.sequences.lengths[slot] == 0) continue;
      sequences_.push_back(data::PlacesOfSlot(input.sequences, slot));
    }
  }

  void Forward(const Step& step) override {
    const uint32_t* offsets = step.batch.sparse[index_].offsets + step.first * places_;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      op::SequenceLengths(offsets, places_, sequences_[i].first, sequences_[i].count,
                          output().value() + i, sequences_.size(), step.size, step.stream);
    }
  }
  void Backward(const Step&) override {}  // lengths have no gradient

 private:
  const size_t index_, places_;
  std::vector<data::SlotPlaces> sequences_;
};

}  // namespace

bool HoldsLengths(const SparseInputConfig& input, ElementType type) {
  const uint32_t most =
      *std::max_element(input.sequences.lengths.begin(), input.sequences.lengths.end());
  const uint32_t largest = type == ElementType::kHalf       ? 1u << 11
                           : type == ElementType::kBfloat16 ? 1u << 8
                                                            : 1u << 24;
  return most <= largest;
}

std::unique_ptr<Layer> MakeSequenceLengthsLayer(const SparseInputConfig& input, size_t index,
                                                Tensor* out) {
  return std::make_unique<SequenceLengthsLayer>(input, index, out);
}

}  // namespace cistern::model
