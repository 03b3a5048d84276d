#include "worker/model/metric/metric_name.h"

#include <array>

namespace cistern::model {
namespace {

struct Named {
  Metric metric;
  const char* name;
  const char* field;
};

constexpr std::array kMetrics = {
    Named{Metric::kAuc, "AUC", "auc"},
    Named{Metric::kAverageLoss, "AverageLoss", "average_loss"},
    Named{Metric::kLogLoss, "LogLoss", "logloss"},
    Named{Metric::kNormalizedEntropy, "NE", "ne"},
    Named{Metric::kCopc, "COPC", "copc"},
    Named{Metric::kPcoc, "PCOC", "pcoc"},
    Named{Metric::kBucketError, "BucketError", "bucket_error"},
    Named{Metric::kActualCtr, "ActualCTR", "actual_ctr"},
    Named{Metric::kPredictedCtr, "PredictedCTR", "predicted_ctr"},
    Named{Metric::kMae, "MAE", "mae"},
    Named{Metric::kRmse, "RMSE", "rmse"},
    Named{Metric::kSmape, "SMAPE", "smape"},
    Named{Metric::kHitRate, "HitRate", "hit_rate"},
    Named{Metric::kNdcg, "NDCG", "ndcg"},
    Named{Metric::kGauc, "GAUC", "gauc"},
};

}  // namespace

std::optional<Metric> FindMetric(absl::string_view name) {
  for (const Named& known : kMetrics) {
    if (name == known.name) return known.metric;
  }
  return std::nullopt;
}

std::vector<std::string> MetricNames() {
  std::vector<std::string> names;
  for (const Named& known : kMetrics) names.push_back(known.name);
  return names;
}

std::string FieldName(Metric metric) {
  for (const Named& known : kMetrics) {
    if (metric == known.metric) return known.field;
  }
  return "";
}

const MetricValue* FindValue(const MetricValues& values, absl::string_view name) {
  for (const MetricValue& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

}  // namespace cistern::model
