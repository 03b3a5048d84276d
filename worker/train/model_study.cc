#include "worker/train/model_study.h"

#include <memory>

#include "common/base/thread_limit.h"
#include "worker/train/served_model.h"
#include "worker/train/study_collector.h"

namespace cistern {

absl::StatusOr<report::ModelStudy> StudyModel(const model::ModelConfig& config,
                                              ParameterClient& client,
                                              const std::vector<std::string>& files,
                                              uint64_t samples, const JobOptions& options) {
  if (samples == 0 || samples > kMaxStudySamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("a study reads 1 to ", kMaxStudySamples, " samples, not ", samples));
  }
  const ThreadLimit threads(options.threads);
  DeviceContext device;  // batches of a GPU hold no rows to permute
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<model::Model> model,
                           ServedModel(config, client, device));
  model::RowStage stage(device);
  const data::LabelRule labels = LabelRuleOf(config);
  const uint64_t batches =
      (samples + config.solver.batchsize_eval - 1) / config.solver.batchsize_eval;
  Evaluator evaluator(config, client, *model, stage, device, nullptr, labels, files, batches);
  StudyCollector collector(
      config, labels,
      [&](const data::HostBatch& batch, absl::Span<model::PassTable* const> tables,
          std::vector<float>* predictions) {
        return model->Predict(batch, tables, predictions, nullptr);
      });
  CISTERN_RETURN_IF_ERROR(
      evaluator
          .Run(nullptr, nullptr,
               [&](const Evaluator::Inspected& seen) { return collector.Add(seen); })
          .status());
  return collector.Study();
}

}  // namespace cistern
