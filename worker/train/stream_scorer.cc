#include "worker/train/stream_scorer.h"

#include <algorithm>

#include "worker/report/score_detail.h"
#include "worker/train/batch_draw.h"
#include "worker/train/calibration.h"

namespace cistern {
namespace {

// Scores would need the updates that are deferred.
bool DefersUpdates(const model::ModelConfig& config) {
  return std::any_of(config.embeddings.begin(), config.embeddings.end(),
                     [](const model::EmbeddingConfig& embedding) {
                       return embedding.optimizer.rule.update_type != UpdateType::kLocal;
                     });
}

// The rows of a stream hold a part of the negative samples if the model says so, but predictions
// are of all.
bool Calibrates(const model::CisternConfig& config) {
  return config.calibrate > 0 && config.negative_rate == 1;
}

std::vector<uint64_t> SizesOf(const data::Pass& pass) {
  std::vector<uint64_t> sizes;
  for (const data::HostBatch& batch : pass.batches) sizes.push_back(batch.all);
  return sizes;
}

}  // namespace

StreamScorer::StreamScorer(const model::ModelConfig& config, ParameterClient& client,
                           model::Model& model, model::RowStage& stage, DeviceContext& device,
                           group::ProcessGroup* group)
    : config_(config),
      model_(model),
      evaluator_(config, client, model, stage, device, group, LabelRuleOf(config), /*files=*/{},
                 /*max_batches=*/0) {}

std::unique_ptr<StreamScorer> StreamScorer::Create(const model::ModelConfig& config,
                                                   ParameterClient& client, model::Model& model,
                                                   model::RowStage& stage, DeviceContext& device,
                                                   group::ProcessGroup* group) {
  if (!config.cistern.stream || DefersUpdates(config)) return nullptr;
  return std::unique_ptr<StreamScorer>(
      new StreamScorer(config, client, model, stage, device, group));
}

absl::StatusOr<std::optional<PassScore>> StreamScorer::Score(const ReadyPass& ready,
                                                             uint64_t draw) {
  const model::StreamConfig& stream = *config_.cistern.stream;
  if (!stream.scores) return std::nullopt;
  CISTERN_ASSIGN_OR_RETURN(
      const EvalSummary scored,
      evaluator_.ScorePass(ready, DrawBatches(SizesOf(*ready.pass), stream.score_samples, draw)));
  PassScore pass;
  pass.score = {scored.auc, scored.logloss, scored.metrics};
  pass.samples = scored.samples;
  pass.auc_error = scored.auc_error;
  if (scored.scores != nullptr) pass.calibration_ratio = scored.scores->calibration_ratio();
  return pass;
}

absl::StatusOr<std::optional<std::string>> StreamScorer::Calibrate(
    const ReadyPass& ready, std::optional<StreamShare>* share) {
  const size_t first = FirstCalibrated(*ready.pass);
  std::vector<bool> is_drawn(ready.pass->batches.size());
  if (first == is_drawn.size()) return std::nullopt;
  std::fill(is_drawn.begin() + static_cast<std::ptrdiff_t>(first), is_drawn.end(), true);
  CISTERN_ASSIGN_OR_RETURN(const EvalSummary scored, evaluator_.ScorePass(ready, is_drawn));
  const std::vector<report::ScoreBin>& bins = scored.scores->bins;
  if (bins.empty()) return std::nullopt;
  if (!*share) *share = StreamShare{.share = config_.cistern.calibrate};
  bool corrects = false;
  std::optional<std::string> warning = AddToShare(bins, &**share, &corrects);
  if (!corrects) return warning;
  CISTERN_RETURN_IF_ERROR(
      model_.ShiftLogits(ShiftToShare(bins, (*share)->share, kMaxShiftOfStream)));
  return warning;
}

size_t StreamScorer::FirstCalibrated(const data::Pass& pass) const {
  if (!Calibrates(config_.cistern)) return pass.batches.size();
  return FirstOfLast(SizesOf(pass), kCalibratedSamples);
}

}  // namespace cistern
