#include "cli/command/train_summary.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/terminal/progress.h"
#include "worker/train/metric_json.h"

namespace cistern {

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
  json["skipped_steps"] = summary.skipped_steps;
  if (!summary.skipped_data.empty()) json["skipped_data"] = summary.skipped_data;
  json["decoded_bytes"] = summary.decoded_bytes;
  json["loss"] = summary.loss;
  json["auc"] = summary.auc ? nlohmann::ordered_json(*summary.auc) : nullptr;
  json["logloss"] = summary.logloss ? nlohmann::ordered_json(*summary.logloss) : nullptr;
  PutMetrics(summary.metrics, &json);
  json["stopped_by"] = summary.stopped_by;
  json["interrupted"] = summary.interrupted;
  json["resumed_from"] =
      summary.resumed_from ? nlohmann::ordered_json(*summary.resumed_from) : nullptr;
  json["recoveries"] = summary.recoveries;
  json["model"] = summary.model_dir;
  return json;
}

std::string TextOf(const TrainSummary& summary) {
  std::string text = absl::StrFormat(
      "trained %d samples (%d iterations, %d passes) in %s, %s samples/s; stopped by %s\n",
      summary.samples, summary.iterations, summary.passes, DurationText(summary.seconds),
      CountText(summary.samples_per_second), summary.stopped_by);
  if (summary.resumed_from == summary.iterations) {
    text =
        absl::StrFormat("nothing is left to train: the run was stopped by %s after %d iterations\n",
                        summary.stopped_by, summary.iterations);
  }
  if (summary.passes > 1) absl::StrAppend(&text, "idle      ", IdleText(summary.idle), "\n");
  if (summary.decoded_bytes.size() > 1) {
    absl::StrAppend(&text, "bytes decoded        ", absl::StrJoin(summary.decoded_bytes, ", "),
                    "  (by worker)\n");
  }
  for (const auto& [cause, files] : summary.skipped_data) {
    absl::StrAppend(&text, "left out             ", files, files == 1 ? " file (" : " files (",
                    cause, "), see the log\n");
  }
  if (summary.skipped_steps > 0) {
    absl::StrAppend(&text, "skipped              ", summary.skipped_steps,
                    " steps whose loss or gradient was not finite\n");
  }
  absl::StrAppendFormat(&text, "training loss        %.6f  (of the last step)\n", summary.loss);
  if (summary.auc) absl::StrAppendFormat(&text, "evaluation auc       %.6f\n", *summary.auc);
  if (!summary.auc && summary.logloss) {
    text += "evaluation auc       none: all labels are of one class\n";
  }
  if (summary.logloss)
    absl::StrAppendFormat(&text, "evaluation log loss  %.6f\n", *summary.logloss);
  MetricValues metrics = summary.metrics;
  for (MetricValue& metric : metrics) metric.name = "evaluation " + metric.name;
  text += MetricLines(metrics, 21);
  absl::StrAppend(&text, "rows                 ", summary.rows, "\n");
  if (!summary.model_dir.empty()) {
    absl::StrAppend(&text, "model                ", summary.model_dir, "\n");
  }
  return text;
}

}  // namespace cistern
