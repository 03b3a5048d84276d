#include "worker/train/study_collector.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "common/base/philox.h"
#include "worker/data/format/label_check.h"
#include "worker/model/metric/auc.h"

namespace cistern {
namespace {

constexpr uint64_t kSeed = 20;              // of the permutations: a study gives the same numbers
constexpr uint64_t kSamplesForWorst = 100;  // fewer samples of a value say little
constexpr size_t kWorstKept = 20;           // per slot

std::optional<double> AucOf(model::RankedScores& scores) {
  scores.Sort();
  const absl::StatusOr<double> auc = model::Auc(scores);
  return auc.ok() ? std::optional<double>(*auc) : std::nullopt;
}

// How many standard deviations the predictions for a value are off.
double Sureness(const report::ValueCalibration& value) {
  const auto samples = static_cast<double>(value.samples);
  const double mean = std::clamp(value.predicted / samples, 1e-6, 1 - 1e-6);
  return std::abs(value.predicted - value.positives) / std::sqrt(samples * mean * (1 - mean));
}

// The factor from a weighted sum to one whose quotient by the number of samples is the weighted
// mean. weights: their sum.
double ScaleToSamples(uint64_t samples, double weights) {
  return weights > 0 ? static_cast<double>(samples) / weights : 1;
}

// The keys of a slot in one sample.
absl::Span<const Key> KeysAt(const std::vector<uint32_t>& offsets, const std::vector<Key>& keys,
                             size_t sample) {
  return absl::MakeConstSpan(keys).subspan(offsets[sample], offsets[sample + 1] - offsets[sample]);
}

}  // namespace

data::HostBatch PermuteSlot(const data::HostBatch& batch, size_t input,
                            const data::SlotPlaces& slot, const std::vector<uint32_t>& order) {
  data::HostBatch permuted = batch;
  const data::HostSparseBatch& from = batch.sparse[input];
  data::HostSparseBatch& to = permuted.sparse[input];
  to.rows.clear();
  to.weights.clear();
  to.shares.clear();
  for (size_t i = 0; i < batch.size; ++i) {
    for (uint32_t s = 0; s < from.slot_num; ++s) {
      const bool is_moved = s >= slot.first && s < slot.first + slot.count;
      const size_t source = (is_moved ? order[i] : i) * from.slot_num + s;
      const auto append = [&](const auto& values, auto* made) {
        if (values.empty()) return;  // the keys have no weights
        made->insert(made->end(), values.begin() + from.offsets[source],
                     values.begin() + from.offsets[source + 1]);
      };
      append(from.rows, &to.rows);
      append(from.weights, &to.weights);
      append(from.shares, &to.shares);
      to.offsets[i * from.slot_num + s + 1] = static_cast<uint32_t>(to.rows.size());
    }
  }
  return permuted;
}

data::HostBatch PermuteColumn(const data::HostBatch& batch, size_t column, size_t columns,
                              const std::vector<uint32_t>& order) {
  data::HostBatch permuted = batch;
  for (size_t i = 0; i < batch.size; ++i) {
    permuted.dense[i * columns + column] = batch.dense[order[i] * columns + column];
  }
  return permuted;
}

StudyCollector::StudyCollector(const model::ModelConfig& config, data::LabelRule labels,
                               Predict predict)
    : config_(config), labels_(labels), predict_(std::move(predict)) {
  for (size_t input = 0; input < config.data.sparse.size(); ++input) {
    for (uint32_t slot = 0; slot < config.data.sparse[input].slot_num; ++slot) {
      slots_.emplace_back();
      slots_.back().input = input;
      slots_.back().slot = slot;
      slots_.back().places = data::PlacesOfSlot(config.data.sparse[input].sequences, slot);
    }
  }
  columns_.resize(config.data.dense_dim);
}

absl::Status StudyCollector::Add(const Evaluator::Inspected& seen) {
  const data::HostBatch& batch = seen.batch;
  AddScores(batch, seen.predictions, &base_);
  label_.insert(label_.end(), batch.label.begin(), batch.label.end());
  prediction_.insert(prediction_.end(), seen.predictions.begin(), seen.predictions.end());
  weight_.insert(weight_.end(), batch.weight.begin(), batch.weight.end());
  std::vector<float> predictions;
  for (size_t s = 0; s < slots_.size(); ++s) {
    Slot& slot = slots_[s];
    AddKeys(seen, &slot);
    const data::HostBatch permuted =
        PermuteSlot(batch, slot.input, slot.places, OrderOf(batch.size, s));
    CISTERN_RETURN_IF_ERROR(predict_(permuted, seen.tables, &predictions));
    AddScores(batch, predictions, &slot.permuted);
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    for (size_t i = 0; i < batch.size; ++i) {
      column.values.push_back(batch.dense[i * columns_.size() + c]);
    }
    const data::HostBatch permuted =
        PermuteColumn(batch, c, columns_.size(), OrderOf(batch.size, slots_.size() + c));
    CISTERN_RETURN_IF_ERROR(predict_(permuted, seen.tables, &predictions));
    AddScores(batch, predictions, &column.permuted);
  }
  samples_ += batch.size;
  ++batches_;
  return absl::OkStatus();
}

bool StudyCollector::IsLabel(float label) const {
  return labels_ != data::LabelRule::kProbabilityOrNone || label >= data::kNoLabelBelow;
}

void StudyCollector::AddScores(const data::HostBatch& batch, const std::vector<float>& predictions,
                               Scores* scores) const {
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!IsLabel(batch.label[i])) continue;
    const float weight = batch.weight.empty() ? 1.0f : batch.weight[i / config_.data.label_dim];
    scores->ranked.Add(batch.label[i], predictions[i], weight);
    scores->loss.Add(model::ClippedCrossEntropy(batch.label[i], predictions[i]), double{weight});
  }
}

void StudyCollector::AddKeys(const Evaluator::Inspected& seen, Slot* slot) const {
  const data::HostSparseBatch& sparse = seen.batch.sparse[slot->input];
  const absl::Span<const Key> keys = seen.pass.keys[slot->input].keys();
  const std::vector<bool>* unseen = nullptr;  // of the first embedding that reads the input
  for (size_t e = config_.embeddings.size(); e-- > 0;) {
    if (config_.embeddings[e].input == slot->input) unseen = &seen.unseen[e];
  }
  for (size_t i = 0; i < seen.batch.size; ++i) {
    const uint32_t* offset = &sparse.offsets[i * sparse.slot_num + slot->places.first];
    const uint32_t first = offset[0], end = offset[slot->places.count];
    for (uint32_t k = first; k < end; ++k) {
      const Row row = sparse.rows[k];
      slot->keys.push_back(keys[row]);
      slot->distinct.insert(keys[row]);
      if (unseen == nullptr || !(*unseen)[row]) continue;
      slot->unseen.insert(keys[row]);
      ++slot->unseen_occurrences;
    }
    slot->offsets.push_back(static_cast<uint32_t>(slot->keys.size()));
    slot->empty_samples += first == end ? 1 : 0;
    slot->longest = std::max<uint64_t>(slot->longest, end - first);
  }
}

// Fisher and Yates' shuffle, a pure function of the seed, the batch and the column.
std::vector<uint32_t> StudyCollector::OrderOf(size_t size, uint64_t column) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  for (size_t i = size; i > 1; --i) {
    const uint32_t bits = Philox(kSeed, batches_ << 32 | i, column).word[0];
    std::swap(order[i - 1], order[bits % i]);
  }
  return order;
}

report::ModelStudy StudyCollector::Study() {
  report::ModelStudy study;
  base_auc_ = AucOf(base_.ranked);
  study.samples = samples_;
  study.auc = base_auc_;
  study.logloss = base_.loss.Value();
  double weights = 0;
  uint64_t labels = 0;
  for (size_t i = 0; i < label_.size(); ++i) {
    if (!IsLabel(label_[i])) continue;
    const double weight = WeightOf(i / config_.data.label_dim);
    study.positives += weight * static_cast<double>(label_[i]);
    weights += weight;
    ++labels;
  }
  study.positives *= ScaleToSamples(labels, weights);
  for (Slot& slot : slots_) study.slots.push_back(StudyOf(slot));
  for (size_t c = 0; c < columns_.size(); ++c) {
    study.columns.push_back(StudyOf(columns_[c], static_cast<uint32_t>(c)));
  }
  return study;
}

report::Importance StudyCollector::ImportanceOf(Scores& permuted) const {
  report::Importance importance;
  importance.auc_drop =
      base_auc_.value_or(0.5) - AucOf(permuted.ranked).value_or(base_auc_.value_or(0.5));
  importance.logloss_rise = permuted.loss.Value() - base_.loss.Value();
  return importance;
}

report::SlotStudy StudyCollector::StudyOf(Slot& slot) const {
  report::SlotStudy study;
  study.input = config_.data.sparse[slot.input].top;
  study.slot = slot.slot;
  study.keys = slot.distinct.size();
  study.unseen_keys = slot.unseen.size();
  study.occurrences = slot.keys.size();
  study.unseen_occurrences = slot.unseen_occurrences;
  study.empty_samples = slot.empty_samples;
  study.longest = slot.longest;
  study.importance = ImportanceOf(slot.permuted);
  study.worst = WorstOf(slot);
  return study;
}

report::ColumnStudy StudyCollector::StudyOf(Column& column, uint32_t index) const {
  report::ColumnStudy study;
  study.column = index;
  study.importance = ImportanceOf(column.permuted);
  if (column.values.empty()) return study;
  const auto count = static_cast<double>(column.values.size());
  study.lowest = *std::min_element(column.values.begin(), column.values.end());
  study.highest = *std::max_element(column.values.begin(), column.values.end());
  for (const float value : column.values) study.mean += value / count;
  for (const float value : column.values) {
    study.deviation += (value - study.mean) * (value - study.mean) / count;
  }
  study.deviation = std::sqrt(study.deviation);
  return study;
}

std::vector<report::ValueCalibration> StudyCollector::WorstOf(const Slot& slot) const {
  const size_t labels = config_.data.label_dim;
  absl::flat_hash_map<Key, report::ValueCalibration> values;
  absl::flat_hash_map<Key, double> weights;  // sums
  const auto each_label = [&](size_t sample, const auto& use) {
    for (size_t i = sample * labels; i < (sample + 1) * labels; ++i) {
      if (IsLabel(label_[i])) use(label_[i], prediction_[i], WeightOf(sample));
    }
  };
  for (size_t i = 0; i < samples_; ++i) {
    for (const Key key : KeysAt(slot.offsets, slot.keys, i)) {
      report::ValueCalibration& value = values[key];
      double& sum = weights[key];
      value.key = key;
      each_label(i, [&](float label, float prediction, double weight) {
        ++value.samples;
        value.positives += weight * static_cast<double>(label);
        value.predicted += weight * static_cast<double>(prediction);
        sum += weight;
      });
    }
  }
  std::vector<report::ValueCalibration> worst;
  for (auto& [key, value] : values) {
    const double scale = ScaleToSamples(value.samples, weights[key]);
    value.positives *= scale;
    value.predicted *= scale;
    if (value.samples >= kSamplesForWorst) worst.push_back(value);
  }
  std::sort(worst.begin(), worst.end(),
            [](const report::ValueCalibration& a, const report::ValueCalibration& b) {
              return std::pair(-Sureness(a), a.key) < std::pair(-Sureness(b), b.key);
            });
  worst.resize(std::min(worst.size(), kWorstKept));
  for (report::ValueCalibration& value : worst) {
    model::RankedScores scores;
    for (size_t i = 0; i < samples_; ++i) {
      const absl::Span<const Key> keys = KeysAt(slot.offsets, slot.keys, i);
      if (std::find(keys.begin(), keys.end(), value.key) == keys.end()) continue;
      each_label(i, [&](float label, float prediction, double weight) {
        scores.Add(label, prediction, static_cast<float>(weight));
      });
    }
    value.auc = AucOf(scores);
  }
  return worst;
}

}  // namespace cistern
