#include "cli/terminal/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace cistern {
namespace {

// Appends " key=value" with up to six digits; nothing without a value.
void AppendPair(std::string* line, const char* key, std::optional<double> value) {
  if (value) absl::StrAppend(line, " ", key, "=", absl::StrFormat("%.6g", *value));
}

void AppendPair(std::string* line, const char* key, std::optional<uint64_t> value) {
  if (value) absl::StrAppend(line, " ", key, "=", *value);
}

// The share of the run that is done: by iterations, or by time if their number is unknown.
std::optional<double> DoneShare(const Progress& progress) {
  if (progress.total_iterations.value_or(0) > 0) {
    return static_cast<double>(progress.iter) / static_cast<double>(*progress.total_iterations);
  }
  if (!progress.seconds_left || progress.seconds <= 0) return std::nullopt;
  return progress.seconds / (progress.seconds + *progress.seconds_left);
}

std::string PercentText(const Progress& progress) {
  const std::optional<double> share = DoneShare(progress);
  return share ? absl::StrFormat("%3.0f%%  ", 100 * std::min(*share, 1.0)) : "";
}

}  // namespace

std::string IdleText(const IdleTimes& idle) {
  const std::pair<const char*, double> causes[] = {{"data", idle.data},
                                                   {"pull", idle.pull},
                                                   {"carry-over", idle.carry_over},
                                                   {"commit", idle.commit}};
  std::string text = absl::StrFormat("%.0f%%", 100 * idle.total()), why;
  for (const auto& [cause, share] : causes) {
    if (share < 0.005) continue;
    absl::StrAppendFormat(&why, "%s%s %.0f%%", why.empty() ? "" : ", ", cause, 100 * share);
  }
  return why.empty() ? text : absl::StrCat(text, " (", why, ")");
}

std::string PlainLine(const Progress& progress) {
  std::string line = absl::StrCat("event=", progress.event, " iter=", progress.iter,
                                  " samples=", progress.samples);
  AppendPair(&line, "epoch", progress.epoch);
  AppendPair(&line, "loss", progress.loss);
  AppendPair(&line, "lr", progress.lr);
  AppendPair(&line, "auc", progress.auc);
  AppendPair(&line, "logloss", progress.logloss);
  for (const MetricValue& metric : progress.metrics) {
    AppendPair(&line, metric.name.c_str(), metric.value);
  }
  AppendPair(&line, "unseen_keys", progress.unseen_keys);
  AppendPair(&line, "pass", progress.pass);
  AppendPair(&line, "rows", progress.rows);
  if (progress.skipped_steps > 0) absl::StrAppend(&line, " skipped_steps=", progress.skipped_steps);
  absl::StrAppendFormat(&line, " seconds=%.2f samples_per_s=%.0f", progress.seconds,
                        progress.samples_per_second);
  AppendPair(&line, "seconds_left", progress.seconds_left);
  if (progress.idle) absl::StrAppend(&line, " idle=\"", IdleText(*progress.idle), "\"");
  if (!progress.message.empty()) absl::StrAppend(&line, " message=\"", progress.message, "\"");
  return line;
}

std::string TerminalLine(const Progress& progress, std::optional<double> auc, int columns) {
  std::string line = PercentText(progress);
  absl::StrAppend(&line, "iter ", progress.iter);
  if (progress.total_iterations) absl::StrAppend(&line, "/", *progress.total_iterations);
  if (progress.epoch) absl::StrAppendFormat(&line, "  epoch %.2f", *progress.epoch);
  absl::StrAppend(&line, "  ", CountText(progress.samples_per_second), " samples/s");
  if (progress.loss) absl::StrAppendFormat(&line, "  loss %.4f", *progress.loss);
  if (auc) absl::StrAppendFormat(&line, "  auc %.5f", *auc);
  if (progress.skipped_steps > 0) absl::StrAppend(&line, "  skipped ", progress.skipped_steps);
  if (progress.seconds_left) {
    absl::StrAppend(&line, "  ", DurationText(*progress.seconds_left), " left");
  }
  // Leaves one column free to keep the terminal from wrapping.
  if (columns > 1 && line.size() >= static_cast<size_t>(columns)) line.resize(columns - 1);
  return line;
}

std::string MetricLines(const MetricValues& metrics, int width) {
  for (const MetricValue& metric : metrics) {
    width = std::max(width, static_cast<int>(metric.name.size()) + 1);
  }
  std::string lines;
  for (const MetricValue& metric : metrics) {
    absl::StrAppendFormat(&lines, "%-*s", width - 1, metric.name);
    if (metric.is_count && metric.value) {
      absl::StrAppendFormat(&lines, " %.0f\n", *metric.value);
    } else if (metric.value) {
      absl::StrAppendFormat(&lines, " %.6f\n", *metric.value);
    } else {
      absl::StrAppend(&lines, " none", metric.note.empty() ? "" : ": ", metric.note, "\n");
    }
  }
  return lines;
}

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 59.95) return absl::StrFormat("%.1fs", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh%02dm", whole / 3600, whole % 3600 / 60);
}

std::string CountText(double count) {
  if (count < 1000) return absl::StrFormat("%.0f", count);
  if (count < 1e6) return absl::StrFormat("%.1fk", count / 1e3);
  if (count < 1e9) return absl::StrFormat("%.2fM", count / 1e6);
  return absl::StrFormat("%.1fG", count / 1e9);
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double amount = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", amount, unit);
}

void ProgressPrinter::Show(const Progress& progress) {
  if (!console_->is_terminal()) {
    console_->Say(PlainLine(progress));
    return;
  }
  if (progress.auc) auc_ = progress.auc;
  if (progress.event == "eval") {
    console_->Say(
        absl::StrFormat("eval  iter %d  auc %s  log loss %s", progress.iter,
                        progress.auc ? absl::StrFormat("%.6f", *progress.auc) : "none",
                        progress.logloss ? absl::StrFormat("%.6f", *progress.logloss) : "none"));
  } else if (!progress.message.empty()) {
    console_->Say(
        absl::StrFormat("%s  iter %d  %s", progress.event, progress.iter, progress.message));
  } else if (progress.event == "train") {
    line_ = TerminalLine(progress, auc_, console_->columns());
    console_->Update(line_);
  }
}

void ProgressPrinter::Finish() {
  if (!line_.empty()) console_->Say(line_);
  line_.clear();
}

}  // namespace cistern
