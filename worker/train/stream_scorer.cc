#include "worker/train/stream_scorer.h"

#include <algorithm>

#include "worker/report/score_detail.h"
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
  CISTERN_ASSIGN_OR_RETURN(const EvalSummary scored,
                           evaluator_.ScorePass(ready, stream.score_samples, draw));
  PassScore pass;
  pass.score = {scored.auc, scored.logloss, scored.metrics};
  pass.samples = scored.samples;
  pass.auc_error = scored.auc_error;
  if (scored.scores != nullptr) pass.calibration_ratio = scored.scores->calibration_ratio();
  return pass;
}

absl::StatusOr<std::optional<std::string>> StreamScorer::Calibrate(
    const ReadyPass& ready, uint64_t draw, std::optional<StreamShare>* share) {
  if (!Calibrates(config_.cistern)) return std::nullopt;
  CISTERN_ASSIGN_OR_RETURN(
      const EvalSummary scored,
      evaluator_.ScorePass(ready, config_.cistern.stream->score_samples, draw));
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

}  // namespace cistern
