// Writes a version of a model to a serving folder (worker/export/serving/serving_model.h).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/export/version_options.h"
#include "app/job_calls.h"
#include "app/model/export_source.h"

namespace cistern::app {

struct ServingExport {
  ExportOptions source;
  VersionOptions version;
  // Data with labels, on which the version is compared with one in float32 before it is served;
  // empty: it is not compared.
  std::vector<std::string> check_data;
  // With check_data: a version that loses more AUC is not served. Unset: kMaxAucLoss.
  std::optional<double> max_auc_loss;
};

inline constexpr double kMaxAucLoss = 0.0005;

// Predictions of the check data by one version, and their quality.
struct CheckedPredictions {
  std::vector<float> predictions;
  double auc = 0, logloss = 0;
};

// What storing rows in a lower precision costs on the check data.
struct PrecisionCost {
  CheckedPredictions exact, stored;
  double largest_difference = 0;
};

struct ServingExported {
  ServingWritten written;
  std::optional<PrecisionCost> cost;
  double seconds = 0;
};

// Errors as OpenExportSource, CheckServingPlace and WriteServingModel. kFailedPrecondition: the
// version loses too much AUC. kInvalidArgument: check data without an AUC, or a limit without check
// data. kCancelled: calls.stop was set.
absl::StatusOr<ServingExported> ExportServing(const ServingExport& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const ServingExported& exported);

}  // namespace cistern::app
