// The metrics that a model file can request, and metric values by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::model {

enum class Metric {
  kAuc,
  kAverageLoss,
  kLogLoss,
  kNormalizedEntropy,
  kCopc,
  kPcoc,
  kBucketError,
  kActualCtr,
  kPredictedCtr,
  kMae,
  kRmse,
  kSmape,
  kHitRate,
  kNdcg,
  kGauc,
};

// Finds a metric by its name in solver.eval_metrics, case-sensitive: "NE" -> kNormalizedEntropy.
// nullopt for an unknown name.
std::optional<Metric> FindMetric(absl::string_view name);
// The names of all metrics, AUC first.
std::vector<std::string> MetricNames();
// The metric's name in metrics.jsonl and on a terminal: "ne", "bucket_error".
std::string FieldName(Metric metric);

// One metric value. With several labels, "auc[1]" is the value of the second label.
struct MetricValue {
  std::string name;
  std::optional<double> value;  // absent: undefined on this data
  std::string note;             // why it is undefined
  bool is_count = false;        // the value is an integer
  bool operator==(const MetricValue&) const = default;
};
using MetricValues = std::vector<MetricValue>;

// Returns the value of this name, or null.
const MetricValue* FindValue(const MetricValues& values, absl::string_view name);

}  // namespace cistern::model
