#include "app/export/export_serving.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/saved_model/rows_place.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"

namespace cistern::app {
namespace {

absl::StatusOr<CheckedPredictions> Score(const ServingExport& options,
                                         const model::ModelConfig& config, const std::string& root,
                                         const std::string& version, const JobCalls& calls) {
  constexpr size_t kBatch = 4096;
  serve::PredictorOptions of_predictor = {
      .threads = 1, .max_samples = kBatch, .max_keys = SIZE_MAX};
  of_predictor.version = version;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<serve::Predictor> predictor,
                           serve::OpenPredictor(root, of_predictor));
  CheckedPredictions scored;
  const auto visit = [&](absl::Span<const float>, absl::Span<const float> predictions) {
    scored.predictions.insert(scored.predictions.end(), predictions.begin(), predictions.end());
    return calls.CheckStop();
  };
  CISTERN_ASSIGN_OR_RETURN(
      const serve::PredictedData done,
      serve::PredictData(*predictor, config, options.check_data, kBatch, visit));
  const model::MetricValue& auc = *model::FindValue(done.metrics, "auc");
  if (!auc.value) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat("the check data has no AUC: ", auc.note)),
        {"check_data"});
  }
  scored.auc = *auc.value;
  scored.logloss = model::FindValue(done.metrics, "logloss")->value.value_or(0);
  return scored;
}

absl::StatusOr<PrecisionCost> Compare(const ServingExport& options,
                                      const model::ModelConfig& config,
                                      const std::string& exact_root, const std::string& version,
                                      const JobCalls& calls) {
  PrecisionCost cost;
  CISTERN_ASSIGN_OR_RETURN(cost.exact, Score(options, config, exact_root, "", calls));
  CISTERN_ASSIGN_OR_RETURN(cost.stored,
                           Score(options, config, options.version.out, version, calls));
  for (size_t i = 0; i < cost.exact.predictions.size(); ++i) {
    const double difference = cost.exact.predictions[i] - cost.stored.predictions[i];
    cost.largest_difference = std::max(cost.largest_difference, std::abs(difference));
  }
  const double loss = cost.exact.auc - cost.stored.auc;
  const double limit = options.max_auc_loss.value_or(kMaxAucLoss);
  if (loss <= limit) return cost;
  return WithFix(
      WithOptions(
          absl::FailedPreconditionError(absl::StrFormat(
              "%s rows lower the AUC of the check data by %.6f (from %.6f to %.6f), more "
              "than %g; the version is not served",
              NameOf(options.version.precision), loss, cost.exact.auc, cost.stored.auc, limit)),
          {"precision", "max_auc_loss"}),
      "choose a higher precision, or a larger limit");
}

// Compares a version, which is written but not served, with one in float32 beside it.
absl::StatusOr<PrecisionCost> Check(const ServingExport& options, const ExportSource& source,
                                    const ModelText& text, const std::string& version,
                                    const JobCalls& calls) {
  LocalFileSystem files;
  const ServingOptions exact = {absl::StrCat(options.version.out, "/", version, ".float32"),
                                RowPrecision::kFloat32, 1};
  const auto removed = absl::MakeCleanup([&] { RemoveTree(files, exact.root).IgnoreError(); });
  CISTERN_RETURN_IF_ERROR(
      WriteServingModel(files, source.config, text, *source.model, exact).status());
  return Compare(options, source.config, exact.root, version, calls);
}

}  // namespace

absl::StatusOr<ServingExported> ExportServing(const ServingExport& given, const JobCalls& calls) {
  ServingExport options = given;
  CISTERN_RETURN_IF_ERROR(CheckServingPlace(options.version));
  if (options.max_auc_loss && options.check_data.empty()) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError("a limit of the loss needs data to measure it on"),
                    {"max_auc_loss", "check_data"}),
        "name labelled data");
  }
  CISTERN_RETURN_IF_ERROR(ResolveRunModel(&options.source));
  const ExportOptions& from = options.source;
  CISTERN_ASSIGN_OR_RETURN(const ExportSource source, OpenExportSource(from, false, calls.stop));
  CISTERN_ASSIGN_OR_RETURN(
      const ModelText text,
      ReadModelText(from.model, options.version,
                    from.model_dir.empty() ? ParseRowsPlace(from.state).path : from.model_dir));
  const absl::Time start = absl::Now();
  ServingExported exported;
  ServingOptions serving = ServingOptionsOf(options.version);
  if (!options.check_data.empty()) {
    serving.accept = [&](const ServingHead& head) -> absl::Status {
      CISTERN_ASSIGN_OR_RETURN(exported.cost, Check(options, source, text, head.folder, calls));
      return absl::OkStatus();
    };
  }
  LocalFileSystem files;
  absl::StatusOr<ServingWritten> written =
      WriteServingModel(files, source.config, text, *source.model, serving);
  if (!written.ok()) return WithFleetFix(written.status(), from.model.fleet);
  exported.written = *std::move(written);
  exported.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return exported;
}

nlohmann::ordered_json JsonOf(const ServingExported& exported) {
  const ServingVersion& version = exported.written.version;
  nlohmann::ordered_json json;
  json["version"] = version.folder;
  json["name"] = version.name;
  json["commit"] = version.commit;
  json["pass"] = version.pass;
  json["precision"] = NameOf(version.precision);
  json["rows"] = exported.written.rows;
  json["bytes"] = exported.written.bytes;
  json["seconds"] = exported.seconds;
  if (!exported.cost) return json;
  const PrecisionCost& cost = *exported.cost;
  json["check"] = {{"samples", cost.exact.predictions.size()},
                   {"auc_float32", cost.exact.auc},
                   {"auc", cost.stored.auc},
                   {"logloss_float32", cost.exact.logloss},
                   {"logloss", cost.stored.logloss},
                   {"largest_difference", cost.largest_difference}};
  return json;
}

}  // namespace cistern::app
