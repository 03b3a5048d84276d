// Collects what a study of a model says, batch by batch (model_study.h).
#pragma once

#include <functional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "worker/data/source/batch.h"
#include "worker/model/config/model_config.h"
#include "worker/model/metric/log_loss.h"
#include "worker/model/metric/ranked_scores.h"
#include "worker/report/slot_study.h"
#include "worker/train/evaluator.h"

namespace cistern {

// Copies `batch` with the contents of one slot permuted: sample i gets those of sample order[i].
data::HostBatch PermuteSlot(const data::HostBatch& batch, size_t input,
                            const data::SlotPlaces& slot, const std::vector<uint32_t>& order);
// The same for a dense column of `columns`.
data::HostBatch PermuteColumn(const data::HostBatch& batch, size_t column, size_t columns,
                              const std::vector<uint32_t>& order);

// Threads: one at a time.
class StudyCollector {
 public:
  // Predicts a batch; the second argument receives [size, label_dim] predictions.
  using Predict = std::function<absl::Status(
      const data::HostBatch&, absl::Span<model::PassTable* const>, std::vector<float>*)>;
  StudyCollector(const model::ModelConfig& config, data::LabelRule labels, Predict predict);

  // Adds a batch: predicts it once for every slot and column.
  absl::Status Add(const Evaluator::Inspected& batch);
  report::ModelStudy Study();

 private:
  struct Scores {
    model::RankedScores ranked;
    model::LogLoss loss;
  };
  struct Slot {
    size_t input = 0;
    uint32_t slot = 0;
    data::SlotPlaces places;
    std::vector<uint32_t> offsets = {0};  // [samples + 1], into keys
    std::vector<Key> keys;
    absl::flat_hash_set<Key> distinct, unseen;
    uint64_t unseen_occurrences = 0, empty_samples = 0, longest = 0;
    Scores permuted;
  };
  struct Column {
    std::vector<float> values;
    Scores permuted;
  };
  void AddScores(const data::HostBatch& batch, const std::vector<float>& predictions,
                 Scores* scores) const;
  void AddKeys(const Evaluator::Inspected& batch, Slot* slot) const;
  std::vector<uint32_t> OrderOf(size_t size, uint64_t column);
  bool IsLabel(float label) const;
  // Of a sample of all those that were added.
  double WeightOf(size_t sample) const {
    return weight_.empty() ? 1.0 : static_cast<double>(weight_[sample]);
  }
  report::Importance ImportanceOf(Scores& permuted) const;
  report::SlotStudy StudyOf(Slot& slot) const;
  report::ColumnStudy StudyOf(Column& column, uint32_t index) const;
  std::vector<report::ValueCalibration> WorstOf(const Slot& slot) const;

  const model::ModelConfig& config_;
  const data::LabelRule labels_;
  const Predict predict_;
  std::vector<Slot> slots_;
  std::vector<Column> columns_;
  Scores base_;
  std::optional<double> base_auc_;
  std::vector<float> label_, prediction_;  // [samples, label_dim]
  std::vector<float> weight_;              // [samples], or empty: every weight is 1
  uint64_t samples_ = 0, batches_ = 0;
};

}  // namespace cistern
