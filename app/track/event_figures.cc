#include "app/track/event_figures.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "worker/report/score_detail.h"

namespace cistern::app {

std::vector<std::pair<std::string, double>> FiguresOf(const Progress& progress) {
  std::vector<std::pair<std::string, double>> figures;
  const report::RunEvent event = progress.event;
  if (event != report::RunEvent::kTrain && event != report::RunEvent::kPass &&
      event != report::RunEvent::kEval && event != report::RunEvent::kFinal)
    return figures;
  const auto add = [&](const std::string& name, std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return;
    figures.emplace_back(absl::StrCat(report::EventName(event), "/", name), *value);
  };
  const auto add_count = [&](const std::string& name, std::optional<uint64_t> count) {
    if (count) add(name, static_cast<double>(*count));
  };
  add("loss", progress.loss);
  add("auc", progress.auc);
  add("logloss", progress.logloss);
  if (progress.scores != nullptr) add("calibration_ratio", progress.scores->calibration_ratio());
  for (const model::MetricValue& metric : progress.metrics) add(metric.name, metric.value);
  if (event == report::RunEvent::kTrain) add("learning_rate", progress.lr);
  if (event == report::RunEvent::kTrain || event == report::RunEvent::kPass) {
    add("samples_per_second", progress.samples_per_second);
    add("epoch", progress.epoch);
  }
  add_count("rows", progress.rows);
  add_count("kept_rows", progress.kept_rows);
  add_count("unseen_keys", progress.unseen_keys);
  add_count("behind_messages", progress.behind_messages);
  add("behind_seconds", progress.behind_seconds);
  add("calibration_ratio", progress.calibration_ratio);
  add_count("scored_samples", progress.scored_samples);
  add("auc_standard_error", progress.auc_standard_error);
  add_count("evicted_rows", progress.evicted_rows);
  add_count("expired_rows", progress.expired_rows);
  if (event == report::RunEvent::kPass && progress.idle) {
    add("idle_data", progress.idle->data);
    add("idle_pull", progress.idle->pull);
    add("idle_carry_over", progress.idle->carry_over);
    add("idle_commit", progress.idle->commit);
  }
  if (event == report::RunEvent::kPass && progress.busy) add("busy", progress.busy->share);
  if (progress.skipped_steps > 0) add_count("skipped_steps", progress.skipped_steps);
  return figures;
}

bool TakesBack(const Progress& progress) {
  return progress.event == report::RunEvent::kResume ||
         progress.event == report::RunEvent::kRecover;
}

}  // namespace cistern::app
