#include "worker/data/prepare/conversion_counts.h"

#include <algorithm>

namespace cistern::data {

ConversionCounts::ConversionCounts(const Recipe& recipe)
    : recipe_(recipe), slots_(recipe.slots.size()), labels_(recipe.labels.size()) {}

void ConversionCounts::Add(const SampleBlock& block) {
  dense_.Add(block);
  const bool weighted = !recipe_.weight.empty();
  const size_t labels = recipe_.labels.size() + (weighted ? 1 : 0);
  for (size_t i = 0; i < block.size; ++i) {
    const double weight = weighted ? block.label[(i + 1) * labels - 1] : 1;
    weight_ += weight;
    weight_squares_ += weight * weight;
    if (!labels_.empty() && block.label[i * labels] > 0) positive_weight_ += weight;
    for (size_t l = 0; l < labels_.size(); ++l) {
      const float label = block.label[i * labels + l];
      labels_[l].positive += label > 0;
      labels_[l].known += label >= 0;
    }
  }
  const SparseColumn& sparse = block.sparse[0];
  for (size_t i = 0; i < block.size; ++i) {
    const uint32_t* const offsets = &sparse.offsets[i * slots_.size()];
    max_keys_ = std::max(max_keys_, offsets[slots_.size()] - offsets[0]);
    for (size_t s = 0; s < slots_.size(); ++s) {
      Slot& slot = slots_[s];
      slot.max_keys = std::max(slot.max_keys, offsets[s + 1] - offsets[s]);
      slot.occurrences += offsets[s + 1] - offsets[s];
      for (uint32_t k = offsets[s]; k < offsets[s + 1]; ++k) slot.keys.Add(sparse.keys[k]);
    }
  }
}

void ConversionCounts::Summarize(const EncoderWork& work, ConvertSummary* summary) const {
  summary->labels = labels_;
  summary->positives = labels_.empty() ? 0 : labels_.front().positive;
  summary->weight = weight_;
  summary->positive_weight = positive_weight_;
  summary->weight_squares = weight_squares_;
  summary->max_keys = max_keys_;
  summary->dense_sums = dense_;
  for (size_t i = 0; i < recipe_.dense.size(); ++i) {
    summary->dense.push_back(
        {recipe_.dense[i].column, work.dense_missing[i], work.dense_beyond[i]});
  }
  for (size_t s = 0; s < slots_.size(); ++s) {
    ConvertSummary::Slot& slot = summary->slots.emplace_back();
    slot.column = recipe_.slots[s].column;
    slot.distinct = slots_[s].keys.Distinct();
    slot.distinct_exact = slots_[s].keys.exact();
    slot.missing = work.slot_missing[s];
    slot.rare = work.slot_rare[s];
    slot.values = slots_[s].occurrences;
    if (recipe_.missing == StandIn::kKey) slot.values -= std::min(slot.values, slot.missing);
    if (recipe_.rare == StandIn::kNone) slot.values += slot.rare;
    slot.max_keys = slots_[s].max_keys;
  }
}

}  // namespace cistern::data
