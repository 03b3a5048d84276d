#include "serve/predictor/predict_data.h"

#include "common/serving/serving_version.h"
#include "serve/predictor/served_state.h"
#include "worker/data/format/label_check.h"
#include "worker/model/metric/metric_set.h"

namespace cistern {
namespace {

PredictRequest RequestOf(const SampleBlock& block) {
  PredictRequest request;
  request.samples = block.size;
  request.dense = block.dense;
  for (const SparseColumn& column : block.sparse) {
    request.inputs.push_back({column.keys, column.offsets});
  }
  return request;
}

}  // namespace

absl::StatusOr<ModelConfig> ReadServedConfig(const std::string& folder) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const ServingHead head, ReadHead(files, folder));
  CISTERN_ASSIGN_OR_RETURN(const ServingVersion version,
                           ReadVersion(files, folder, head.folder, head.xxh3));
  const std::string path = absl::StrCat(folder, "/", version.model.path);
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, path, version.model.bytes));
  return ParseModelConfig(text, path, version.overrides);
}

absl::StatusOr<PredictedData> PredictData(Predictor& predictor, const ModelConfig& config,
                                          const std::vector<std::string>& files, size_t batch,
                                          const VisitPredictions& visit) {
  PredictedData done;
  MetricOptions metric_options;
  metric_options.label_dim = config.data.label_dim;
  metric_options.masked_below = kNoLabelBelow;
  MetricSet metrics(metric_options);
  SampleBlock block;
  std::vector<float> predictions;
  for (const std::string& source : files) {
    DataSetOptions options = DataSetOf(config, source);
    options.labels = LabelRule::kProbabilityOrNone;
    absl::StatusOr<std::unique_ptr<SampleReader>> reader = OpenDataSet(options);
    if (absl::IsNotFound(reader.status())) {  // a wrong argument, not bad data
      return absl::InvalidArgumentError(
          absl::StrCat("data '", source, "': ", reader.status().message()));
    }
    if (!reader.ok()) return reader.status();
    for (;;) {
      block.Reset(options.shape.slot_nums.size());
      CISTERN_ASSIGN_OR_RETURN(const size_t samples, (*reader)->Read(batch, &block));
      if (samples == 0) break;
      predictions.resize(samples * options.shape.label_dim);
      ServedVersion version;
      uint64_t unseen = 0;
      CISTERN_RETURN_IF_ERROR(
          predictor.Predict(RequestOf(block), absl::MakeSpan(predictions), &version, &unseen));
      done.samples += samples;
      done.unseen += unseen;
      for (const float label : block.label) done.positives += label > 0.5f ? 1 : 0;
      CISTERN_RETURN_IF_ERROR(metrics.Add(block.label, predictions));
      CISTERN_RETURN_IF_ERROR(visit(block.label, predictions));
    }
  }
  done.metrics = metrics.Values();
  return done;
}

}  // namespace cistern
