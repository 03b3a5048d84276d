#include "app/train/train_json.h"

#include "worker/train/metric_json.h"

namespace cistern::app {

nlohmann::ordered_json JsonOf(const TrainSummary& summary) {
  nlohmann::ordered_json json;
  json["iterations"] = summary.iterations;
  json["samples"] = summary.samples;
  json["passes"] = summary.passes;
  json["epochs"] = summary.epochs;
  json["rows"] = summary.rows;
  json["seconds"] = summary.seconds;
  json["samples_per_second"] = summary.samples_per_second;
  json["first_step_seconds"] = summary.first_step_seconds;
  json["idle"] = JsonOf(summary.idle);
  json["busy"] = JsonOf(summary.busy);
  json["skipped_steps"] = summary.skipped_steps;
  if (summary.kept_rows > 0) json["kept_rows"] = summary.kept_rows;
  if (!summary.skipped_data.empty()) json["skipped_data"] = summary.skipped_data;
  json["decoded_bytes"] = summary.decoded_bytes;
  json["loss"] = summary.loss;
  json["auc"] = summary.score.auc ? nlohmann::ordered_json(*summary.score.auc) : nullptr;
  json["logloss"] =
      summary.score.logloss ? nlohmann::ordered_json(*summary.score.logloss) : nullptr;
  PutMetrics(summary.score.metrics, &json);
  json["stopped_by"] = report::StopReasonName(summary.stopped_by);
  json["interrupted"] = summary.interrupted();
  json["resumed_from"] =
      summary.resumed_from ? nlohmann::ordered_json(*summary.resumed_from) : nullptr;
  json["recoveries"] = summary.recoveries;
  json["model"] = summary.model_dir;
  return json;
}

nlohmann::ordered_json JsonOf(const EvalSummary& summary) {
  nlohmann::ordered_json json;
  json["samples"] = summary.samples;
  json["positives"] = summary.positives;
  json["auc"] = summary.auc ? nlohmann::ordered_json(*summary.auc) : nullptr;
  if (!summary.auc) json["auc_note"] = summary.auc_note;
  json["logloss"] = summary.logloss;
  PutMetrics(summary.metrics, &json);
  for (const model::MetricValue& metric : summary.metrics) {
    if (!metric.value) json[metric.name + "_note"] = metric.note;
  }
  json["unseen_keys"] = summary.unseen_keys;
  json["seconds"] = summary.seconds;
  return json;
}

nlohmann::ordered_json JsonOf(const Published& published) {
  nlohmann::ordered_json json = {{"commit", nullptr}, {"versions", published.versions}};
  if (published.commit) json["commit"] = *published.commit;
  return json;
}

}  // namespace cistern::app
