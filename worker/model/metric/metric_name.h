// The metrics that a model file may ask for, and figures under their names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern {

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
  kGauc,
};

// "NE" -> kNormalizedEntropy; nullopt: no metric of this name. Names are those of
// solver.eval_metrics, letters' case included.
std::optional<Metric> FindMetric(absl::string_view name);
// All of them, AUC first.
std::vector<std::string> MetricNames();
// What figures are called in metrics.jsonl and on a terminal: "ne", "bucket_error".
std::string FieldName(Metric metric);

// One figure. Of a model with several labels, "auc[1]" is that of the second one.
struct MetricValue {
  std::string name;
  std::optional<double> value;  // absent: undefined on this data
  std::string note;             // why it is undefined
  bool is_count = false;        // a whole number
  bool operator==(const MetricValue&) const = default;
};
using MetricValues = std::vector<MetricValue>;

// Null: not among them.
const MetricValue* FindValue(const MetricValues& values, absl::string_view name);

}  // namespace cistern
