#include "serve/predictor/predict_data.h"

#include "common/serving/serving_version.h"
#include "serve/predictor/served_state.h"
#include "worker/data/format/label_check.h"
#include "worker/model/layer/layer_list.h"
#include "worker/model/metric/metric_set.h"

namespace cistern::serve {
namespace {

PredictRequest RequestOf(const data::SampleBlock& block) {
  PredictRequest request;
  request.samples = block.size;
  request.dense = block.dense;
  for (const data::SparseColumn& column : block.sparse) {
    request.inputs.push_back({column.keys, column.offsets, column.weights});
  }
  return request;
}

model::MetricOptions MetricOptionsOf(const model::ModelConfig& config) {
  model::MetricOptions options;
  options.label_dim = config.data.label_dim;
  options.masked_below = data::kNoLabelBelow;
  return options;
}

// Predicts and scores what readers read.
//
// Threads: one at a time.
class Scorer {
 public:
  Scorer(Predictor& predictor, const model::ModelConfig& config, size_t batch,
         const VisitPredictions& visit)
      : predictor_(predictor),
        shape_(model::ShapeOf(config.data)),
        batch_(batch),
        visit_(visit),
        metrics_(MetricOptionsOf(config)) {
    done_.version = predictor.version();
  }

  absl::Status Read(data::SampleReader& reader) {
    for (;;) {
      block_.Reset(shape_.slot_nums.size());
      CISTERN_ASSIGN_OR_RETURN(const size_t samples, reader.Read(batch_, &block_));
      if (samples == 0) return absl::OkStatus();
      std::vector<float> weights;
      if (shape_.weighted) weights = data::TakeWeights(samples, &block_.label);
      predictions_.resize(block_.label.size());
      uint64_t unseen = 0;
      CISTERN_RETURN_IF_ERROR(predictor_.Predict(RequestOf(block_), absl::MakeSpan(predictions_),
                                                 &done_.version, &unseen));
      done_.samples += samples;
      done_.unseen += unseen;
      for (const float label : block_.label) done_.positives += label > 0.5f ? 1 : 0;
      CISTERN_RETURN_IF_ERROR(metrics_.Add(block_.label, predictions_, {}, {}, weights));
      CISTERN_RETURN_IF_ERROR(visit_(block_.label, predictions_));
    }
  }
  PredictedData Finish() {
    done_.metrics = metrics_.Values();
    return std::move(done_);
  }

 private:
  Predictor& predictor_;
  const data::SampleShape shape_;
  const size_t batch_;
  const VisitPredictions& visit_;
  model::MetricSet metrics_;
  PredictedData done_;
  data::SampleBlock block_;
  std::vector<float> predictions_;
};

}  // namespace

absl::StatusOr<model::ModelConfig> ReadServedConfig(const std::string& folder) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const ServingHead head, ReadHead(files, folder));
  CISTERN_ASSIGN_OR_RETURN(const ServingVersion version,
                           ReadVersion(files, folder, head.folder, head.xxh3));
  const std::string path = absl::StrCat(folder, "/", version.model.path);
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, path, version.model.bytes));
  return model::ParseModelConfig(text, path, version.overrides, model::LayerGrammars());
}

absl::StatusOr<PredictedData> PredictReader(Predictor& predictor, const model::ModelConfig& config,
                                            data::SampleReader& reader, size_t batch,
                                            const VisitPredictions& visit) {
  Scorer scorer(predictor, config, batch, visit);
  CISTERN_RETURN_IF_ERROR(scorer.Read(reader));
  return scorer.Finish();
}

absl::StatusOr<PredictedData> PredictData(Predictor& predictor, const model::ModelConfig& config,
                                          const std::vector<std::string>& files, size_t batch,
                                          const VisitPredictions& visit) {
  Scorer scorer(predictor, config, batch, visit);
  for (const std::string& source : files) {
    data::DataSetOptions options = model::DataSetOf(config, source);
    options.labels = data::LabelRule::kProbabilityOrNone;
    absl::StatusOr<std::unique_ptr<data::SampleReader>> reader = data::OpenDataSet(options);
    if (absl::IsNotFound(reader.status())) {  // a wrong argument, not bad data
      return absl::InvalidArgumentError(
          absl::StrCat("data '", source, "': ", reader.status().message()));
    }
    if (!reader.ok()) return reader.status();
    CISTERN_RETURN_IF_ERROR(scorer.Read(**reader));
  }
  return scorer.Finish();
}

}  // namespace cistern::serve
