#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "app/model/export_source.h"
#include "cli/command/export_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/command/version_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/saved_model/rows_place.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"
#include "worker/export/serving/serving_model.h"

namespace cistern {
namespace {

constexpr double kMaxAucLoss = 0.0005;

struct ServingFlags {
  app::ExportOptions source;
  VersionFlags version;
  std::vector<std::string> check_data;
  double max_auc_loss = std::numeric_limits<double>::quiet_NaN();  // not given: kMaxAucLoss
};

// Predictions of the check data, and their quality.
struct Scored {
  std::vector<float> predictions;
  double auc = 0, logloss = 0;
};

absl::StatusOr<Scored> Score(const ServingFlags& flags, const ModelConfig& config,
                             const std::string& root, const std::string& version) {
  constexpr size_t kBatch = 4096;
  PredictorOptions options = {.threads = 1, .max_samples = kBatch, .max_keys = SIZE_MAX};
  options.version = version;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Predictor> predictor,
                           OpenPredictor(root, options));
  Scored scored;
  const auto visit = [&](absl::Span<const float>, absl::Span<const float> predictions) {
    scored.predictions.insert(scored.predictions.end(), predictions.begin(), predictions.end());
    return absl::OkStatus();
  };
  CISTERN_ASSIGN_OR_RETURN(const PredictedData done,
                           PredictData(*predictor, config, flags.check_data, kBatch, visit));
  const MetricValue& auc = *FindValue(done.metrics, "auc");
  if (!auc.value) {
    return absl::InvalidArgumentError(
        absl::StrCat("--check-data: the data has no AUC: ", auc.note));
  }
  scored.auc = *auc.value;
  scored.logloss = FindValue(done.metrics, "logloss")->value.value_or(0);
  return scored;
}

// What storing rows in a lower precision costs on the check data.
struct PrecisionCost {
  Scored exact, stored;
  double largest_difference = 0;
};

absl::StatusOr<PrecisionCost> Compare(const ServingFlags& flags, const ModelConfig& config,
                                      const std::string& exact_root, const std::string& version) {
  PrecisionCost cost;
  CISTERN_ASSIGN_OR_RETURN(cost.exact, Score(flags, config, exact_root, ""));
  CISTERN_ASSIGN_OR_RETURN(cost.stored, Score(flags, config, flags.version.out, version));
  for (size_t i = 0; i < cost.exact.predictions.size(); ++i) {
    const double difference = cost.exact.predictions[i] - cost.stored.predictions[i];
    cost.largest_difference = std::max(cost.largest_difference, std::abs(difference));
  }
  const double loss = cost.exact.auc - cost.stored.auc;
  if (loss <= flags.max_auc_loss) return cost;
  return WithFix(
      absl::FailedPreconditionError(absl::StrFormat(
          "%s rows lower the AUC of the check data by %.6f (from %.6f to %.6f), more than "
          "--max-auc-loss %g; the version is not served",
          flags.version.precision, loss, cost.exact.auc, cost.stored.auc, flags.max_auc_loss)),
      "choose a higher --precision, or a larger --max-auc-loss");
}

void AddCost(const PrecisionCost& cost, Report* report) {
  report->json["check"] = {{"samples", cost.exact.predictions.size()},
                           {"auc_float32", cost.exact.auc},
                           {"auc", cost.stored.auc},
                           {"logloss_float32", cost.exact.logloss},
                           {"logloss", cost.stored.logloss},
                           {"largest_difference", cost.largest_difference}};
  absl::StrAppendFormat(&report->text,
                        "check data: AUC %.6f (float32: %.6f), log loss %.6f (%.6f), largest "
                        "difference of a prediction %.3g\n",
                        cost.stored.auc, cost.exact.auc, cost.stored.logloss, cost.exact.logloss,
                        cost.largest_difference);
}

absl::Status TakeMaxAucLoss(ServingFlags* flags) {
  if (std::isnan(flags->max_auc_loss)) {
    flags->max_auc_loss = kMaxAucLoss;
    return absl::OkStatus();
  }
  if (!flags->check_data.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError("--max-auc-loss needs data to measure the loss on"),
                 "name labelled data: --check-data FILE");
}

absl::StatusOr<Report> RunExportServing(const ServingFlags& given, Console& console) {
  LocalFileSystem files;
  ServingFlags flags = given;
  CISTERN_RETURN_IF_ERROR(CheckServingPlace(flags.version));
  CISTERN_RETURN_IF_ERROR(TakeMaxAucLoss(&flags));
  CISTERN_RETURN_IF_ERROR(app::TakeRunModel(&flags.source));
  CISTERN_ASSIGN_OR_RETURN(const app::ExportSource source, app::OpenExportSource(flags.source));
  const app::ModelOptions& of_model = flags.source.model;
  const app::ExportOptions& from = flags.source;
  CISTERN_ASSIGN_OR_RETURN(
      const ModelText model_text,
      ReadModelText(of_model, flags.version,
                    from.model_dir.empty() ? ParseRowsPlace(from.state).path : from.model_dir));
  const absl::Time start = absl::Now();
  ServingOptions options = flags.version.options();
  std::optional<PrecisionCost> cost;
  if (!flags.check_data.empty()) {
    options.accept = [&](const ServingHead& head) -> absl::Status {
      const ServingOptions exact = {absl::StrCat(flags.version.out, "/", head.folder, ".float32"),
                                    RowPrecision::kFloat32, 1};
      const auto removed = absl::MakeCleanup([&] { RemoveTree(files, exact.root).IgnoreError(); });
      CISTERN_RETURN_IF_ERROR(
          WriteServingModel(files, source.config, model_text, *source.model, exact).status());
      CISTERN_ASSIGN_OR_RETURN(cost, Compare(flags, source.config, exact.root, head.folder));
      return absl::OkStatus();
    };
  }
  const auto written = WriteServingModel(files, source.config, model_text, *source.model, options);
  if (!written.ok()) return app::WithFleetFix(written.status(), of_model.fleet);
  const ServingVersion& version = written->version;
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Report report;
  report.json["version"] = version.folder;
  report.json["name"] = version.name;
  report.json["commit"] = version.commit;
  report.json["pass"] = version.pass;
  report.json["precision"] = flags.version.precision;
  report.json["rows"] = written->rows;
  report.json["bytes"] = written->bytes;
  report.json["seconds"] = seconds;
  report.text = absl::StrCat(flags.version.out, "/", version.folder, "\nexported ", written->rows,
                             " rows as ", flags.version.precision, ", ", BytesText(written->bytes),
                             " in ", DurationText(seconds), "; ",
                             version.commit > 0 ? absl::StrCat("commit ", version.commit)
                                                : absl::StrCat("pass ", version.pass),
                             "; model ", version.name, "\n");
  if (const std::string note = NameNote(*written, flags.version.out); !note.empty()) {
    console.Say(note);
  }
  if (cost) AddCost(*cost, &report);
  return report;
}

}  // namespace

void AddExportServing(Command& all) {
  auto flags = std::make_shared<ServingFlags>();
  Command& command =
      all.Add("serving", "Writes a version of the model to a serving folder, for cistern serve.",
              "cistern export serving deepfm.json --model runs/deepfm --out serving");
  AddExportFlags(command, &flags->source);
  AddVersionFlags(command, &flags->version);
  command.List("--check-data", &flags->check_data, true,
               {"FILE,...",
                "Data with labels, on which the version is compared with one in float32 before it "
                "is served.",
                "--check-data test.txt"});
  command.Flag("--max-auc-loss", &flags->max_auc_loss,
               {"NUMBER", "With --check-data: a version that loses more AUC is not served.",
                "--max-auc-loss 0.0001"});
  command.Does([flags](Console& console) { return RunExportServing(*flags, console); });
}

}  // namespace cistern
