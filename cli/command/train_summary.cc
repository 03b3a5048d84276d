#include "cli/command/train_summary.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {

std::string TextOf(const TrainSummary& summary) {
  std::string text = absl::StrFormat(
      "trained %d samples (%d iterations, %d passes) in %s, %s samples/s; stopped by %s\n",
      summary.samples, summary.iterations, summary.passes, DurationText(summary.seconds),
      CountText(summary.samples_per_second), report::StopReasonName(summary.stopped_by));
  if (summary.resumed_from == summary.iterations) {
    text =
        absl::StrFormat("nothing is left to train: the run was stopped by %s after %d iterations\n",
                        report::StopReasonName(summary.stopped_by), summary.iterations);
  }
  if (summary.passes > 1) absl::StrAppend(&text, "idle      ", IdleText(summary.idle), "\n");
  if (summary.iterations > 0 && summary.busy.seconds > 0) {
    absl::StrAppendFormat(&text, "busy      %.0f%% with training steps\n",
                          100 * summary.busy.share);
  }
  if (summary.kept_rows > 0) {
    absl::StrAppend(&text, "kept                 ", summary.kept_rows,
                    " rows for the next pass, which commits in memory did not push\n");
  }
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
  if (summary.score.auc)
    absl::StrAppendFormat(&text, "evaluation auc       %.6f\n", *summary.score.auc);
  if (!summary.score.auc && summary.score.logloss) {
    text += "evaluation auc       none: all labels are of one class\n";
  }
  if (summary.score.logloss)
    absl::StrAppendFormat(&text, "evaluation log loss  %.6f\n", *summary.score.logloss);
  model::MetricValues metrics = summary.score.metrics;
  for (model::MetricValue& metric : metrics) metric.name = "evaluation " + metric.name;
  text += MetricLines(metrics, 21);
  absl::StrAppend(&text, "rows                 ", summary.rows, "\n");
  if (!summary.model_dir.empty()) {
    absl::StrAppend(&text, "model                ", summary.model_dir, "\n");
  }
  return text;
}

void AddFinalTest(const EvalSummary& score, const std::string& file, Report* report) {
  report->json["test"] = {{"file", file},
                          {"samples", score.samples},
                          {"auc", score.auc ? nlohmann::ordered_json(*score.auc) : nullptr},
                          {"logloss", score.logloss}};
  report->text += score.auc ? absl::StrFormat("test auc             %.6f", *score.auc)
                            : absl::StrCat("test auc             none: ", score.auc_note);
  absl::StrAppendFormat(&report->text, "  (%d samples of %s)\ntest log loss        %.6f\n",
                        score.samples, file, score.logloss);
}

}  // namespace cistern::cli
