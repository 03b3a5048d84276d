// Evaluate and Predict of jobs.h, and the model that they apply.
#include <memory>

#include "common/base/thread_limit.h"
#include "common/io/new_file.h"
#include "worker/data/format/prediction_lines.h"
#include "worker/model/graph/model.h"
#include "worker/train/evaluator.h"
#include "worker/train/jobs.h"
#include "worker/train/served_model.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<model::Model>> ServedModel(const model::ModelConfig& config,
                                                          ParameterClient& client,
                                                          DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<model::Model> model,
                           model::Model::Create(config, device));
  CISTERN_RETURN_IF_ERROR(client.CreateTables(model->schema()));
  model->SetClock(client.clock());
  for (int i = 0; i < model->schema().dense_tables_size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(std::vector<float> values, model->ReadDense(static_cast<size_t>(i)));
    const absl::Status pulled = client.PullDense(static_cast<TableId>(i), values.data());
    if (absl::IsNotFound(pulled)) {
      return absl::FailedPreconditionError(
          "the servers hold no trained model: train one, or load one with `cistern load`");
    }
    CISTERN_RETURN_IF_ERROR(pulled);
    CISTERN_RETURN_IF_ERROR(model->WriteDense(static_cast<size_t>(i), values));
  }
  return model;
}

namespace {

// Predicts the samples of `files`, or those that `open` opens. ready: called before the first.
absl::StatusOr<EvalSummary> PredictFrom(const model::ModelConfig& config, ParameterClient& client,
                                        const std::vector<std::string>& files,
                                        const OpenSamples& open, const OnPredictions& visit,
                                        const JobOptions& options,
                                        const std::function<absl::Status()>& ready = nullptr) {
  const ThreadLimit threads(options.threads);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceContext> device,
                           DeviceContext::Open(options.device, /*gpu=*/0, options.check_ops));
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<model::Model> model,
                           ServedModel(config, client, *device));
  model::RowStage stage(*device);
  // The labels of data to predict may be unknown.
  Evaluator evaluator(config, client, *model, stage, *device, nullptr,
                      data::LabelRule::kProbabilityOrNone, files,
                      /*max_batches=*/0);
  if (open != nullptr) evaluator.ReadFrom([&open](uint32_t) { return open(); });
  if (ready != nullptr) CISTERN_RETURN_IF_ERROR(ready());
  return evaluator.Run(nullptr,
                       [&](const data::HostBatch& batch, const std::vector<float>& predictions) {
                         return visit(batch.label, predictions);
                       });
}

}  // namespace

absl::StatusOr<v1::Schema> SchemaOf(const model::ModelConfig& config) {
  DeviceContext device;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<model::Model> model,
                           model::Model::Create(config, device));
  return model->schema();
}

absl::StatusOr<EvalSummary> Evaluate(const model::ModelConfig& config, ParameterClient& client,
                                     const std::vector<std::string>& files,
                                     const JobOptions& options) {
  const ThreadLimit threads(options.threads);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceContext> device,
                           DeviceContext::Open(options.device, /*gpu=*/0, options.check_ops));
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<model::Model> model,
                           ServedModel(config, client, *device));
  model::RowStage stage(*device);
  Evaluator evaluator(config, client, *model, stage, *device, nullptr, LabelRuleOf(config), files,
                      /*max_batches=*/0);
  return evaluator.Run(nullptr);
}

absl::StatusOr<EvalSummary> PredictSamples(const model::ModelConfig& config,
                                           ParameterClient& client, const OpenSamples& open,
                                           const OnPredictions& visit, const JobOptions& options) {
  return PredictFrom(config, client, {}, open, visit, options);
}

OnPredictions WriteLinesTo(const std::unique_ptr<NewFile>& file, size_t label_dim,
                           OnPredictions visit) {
  return [&file, label_dim, visit = std::move(visit), text = std::string()](
             absl::Span<const float> labels,
             absl::Span<const float> predictions) mutable -> absl::Status {
    if (file != nullptr) {
      text.clear();
      data::AppendPredictionLines(labels, predictions, label_dim, &text);
      CISTERN_RETURN_IF_ERROR(file->Append(text));
    }
    return visit ? visit(labels, predictions) : absl::OkStatus();
  };
}

absl::StatusOr<EvalSummary> Predict(const model::ModelConfig& config, ParameterClient& client,
                                    const std::vector<std::string>& files,
                                    const std::string& output, const JobOptions& options,
                                    const OnPredictions& visit) {
  LocalFileSystem local;
  std::unique_ptr<NewFile> file;
  // The output is created once the model is known to be there.
  const auto create = [&]() -> absl::Status {
    if (output.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(
        file, NewFile::Create(options.files != nullptr ? *options.files : local, output));
    file->WillBeRead();
    return absl::OkStatus();
  };
  CISTERN_ASSIGN_OR_RETURN(
      EvalSummary summary,
      PredictFrom(config, client, files, nullptr, WriteLinesTo(file, config.data.label_dim, visit),
                  options, create));
  if (file != nullptr) CISTERN_RETURN_IF_ERROR(file->Close());
  return summary;
}

}  // namespace cistern
