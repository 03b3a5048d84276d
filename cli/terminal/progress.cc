#include "cli/terminal/progress.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "worker/pass/data_source.h"

namespace cistern::cli {
namespace {

// Appends " key=value" with up to six digits; nothing without a value.
void AppendPair(std::string* line, const char* key, std::optional<double> value) {
  if (value) absl::StrAppend(line, " ", key, "=", absl::StrFormat("%.6g", *value));
}

void AppendPair(std::string* line, const char* key, std::optional<uint64_t> value) {
  if (value) absl::StrAppend(line, " ", key, "=", *value);
}

bool IsUtf8Terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string lower = absl::AsciiStrToLower(value);
    return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
  }
  return false;
}

// What the bar says while nothing is trained; empty while it is.
std::string PhaseText(const LiveState& live) {
  if (live.awaits_commit.load(std::memory_order_relaxed)) return "committing";
  switch (live.phase.load(std::memory_order_relaxed)) {
    case Phase::kRead:
      return live.began ? "waiting for data" : "reading the first pass";
    case Phase::kTrain:
      return "";
    case Phase::kCommit:
      return "committing";
    case Phase::kEvaluate:
      return "evaluating";
    case Phase::kSave:
      return "saving";
  }
  return "";
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
  std::string line = absl::StrCat("event=", report::EventName(progress.event),
                                  " iter=", progress.iter, " samples=", progress.samples);
  AppendPair(&line, "epoch", progress.epoch);
  AppendPair(&line, "loss", progress.loss);
  AppendPair(&line, "lr", progress.lr);
  AppendPair(&line, "auc", progress.auc);
  AppendPair(&line, "logloss", progress.logloss);
  for (const model::MetricValue& metric : progress.metrics) {
    AppendPair(&line, metric.name.c_str(), metric.value);
  }
  AppendPair(&line, "unseen_keys", progress.unseen_keys);
  AppendPair(&line, "pass", progress.pass);
  AppendPair(&line, "rows", progress.rows);
  AppendPair(&line, "kept_rows", progress.kept_rows);
  AppendPair(&line, "behind_messages", progress.behind_messages);
  AppendPair(&line, "behind_seconds", progress.behind_seconds);
  AppendPair(&line, "calibration_ratio", progress.calibration_ratio);
  AppendPair(&line, "scored_samples", progress.scored_samples);
  AppendPair(&line, "auc_standard_error", progress.auc_standard_error);
  AppendPair(&line, "evicted_rows", progress.evicted_rows);
  AppendPair(&line, "expired_rows", progress.expired_rows);
  if (progress.skipped_steps > 0) absl::StrAppend(&line, " skipped_steps=", progress.skipped_steps);
  absl::StrAppendFormat(&line, " seconds=%.2f samples_per_second=%.0f", progress.seconds,
                        progress.samples_per_second);
  AppendPair(&line, "seconds_left", progress.seconds_left);
  if (progress.idle) absl::StrAppend(&line, " idle=\"", IdleText(*progress.idle), "\"");
  if (progress.busy) absl::StrAppendFormat(&line, " busy=%.0f%%", 100 * progress.busy->share);
  if (!progress.message.empty()) absl::StrAppend(&line, " message=\"", progress.message, "\"");
  return line;
}

std::string MetricLines(const model::MetricValues& metrics, int width) {
  for (const model::MetricValue& metric : metrics) {
    width = std::max(width, static_cast<int>(metric.name.size()) + 1);
  }
  std::string lines;
  for (const model::MetricValue& metric : metrics) {
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

RunSize SizeOf(const model::ModelConfig& config) {
  RunSize size;
  if (config.solver.max_iter > 0) {
    size.iterations = config.solver.max_iter;
  } else if (const std::optional<uint64_t> epoch = SamplesOfEpoch(config)) {
    size.samples = *epoch * config.solver.num_epochs;
  }
  return size;
}

ProgressPrinter::ProgressPrinter(Console* console, const LiveState* live, const RunSize& size)
    : console_(console), live_(live), size_(size), start_(absl::Now()) {
  style_.colour = console->has_colour();
  style_.unicode = IsUtf8Terminal();
  if (!console_->is_terminal()) return;
  thread_ = std::make_unique<ThreadPool>(1);
  thread_->Run([this] { Run(); });
}

ProgressPrinter::~ProgressPrinter() {
  Finish();
}

void ProgressPrinter::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  thread_.reset();
  console_->Update("");
}

void ProgressPrinter::Run() {
  absl::MutexLock lock(&mutex_);
  do {
    style_.columns = console_->columns();
    console_->Update(BarLine(StateNow(), style_));
  } while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), absl::Milliseconds(200)));
}

BarState ProgressPrinter::StateNow() {
  BarState state;
  const bool began = live_->began.load(std::memory_order_relaxed);
  const uint64_t samples = live_->samples.load(std::memory_order_relaxed);
  const uint64_t iterations = live_->iterations.load(std::memory_order_relaxed);
  const double elapsed = absl::ToDoubleSeconds(absl::Now() - start_);
  state.samples = samples;
  state.phase = PhaseText(*live_);
  state.auc = auc_;
  if (size_.iterations) {
    state.share = static_cast<double>(iterations) / static_cast<double>(*size_.iterations);
  } else if (size_.samples) {
    state.share = static_cast<double>(samples) / static_cast<double>(*size_.samples);
  }
  if (!began) return state;
  state.loss = live_->loss.load(std::memory_order_relaxed);
  if (!first_) first_ = Mark{elapsed, samples, state.share.value_or(0)};
  // The rate follows changes within a few seconds.
  if (elapsed > last_.seconds + 1 && samples >= last_.samples) {
    const double rate = static_cast<double>(samples - last_.samples) / (elapsed - last_.seconds);
    if (state.phase.empty()) rate_ = rate_ ? 0.7 * *rate_ + 0.3 * rate : rate;
    last_ = {elapsed, samples, 0};
  }
  state.samples_per_second = rate_;
  const double done = state.share.value_or(0) - first_->share;
  if (done > 0 && *state.share < 1 && elapsed > first_->seconds + 1) {
    state.seconds_left = (elapsed - first_->seconds) * std::max(1 - *state.share, 0.0) / done;
  }
  return state;
}

void ProgressPrinter::Show(const Progress& progress) {
  absl::MutexLock lock(&mutex_);
  if (!console_->is_terminal()) {
    console_->Say(PlainLine(progress));
    return;
  }
  if (progress.auc) auc_ = progress.auc;
  if (progress.event == report::RunEvent::kEval) {
    std::string line = "eval";
    if (progress.epoch) absl::StrAppendFormat(&line, "  epoch %.2f", *progress.epoch);
    absl::StrAppendFormat(&line, "  iter %d  auc %s  log loss %s", progress.iter,
                          progress.auc ? absl::StrFormat("%.6f", *progress.auc) : "none",
                          progress.logloss ? absl::StrFormat("%.6f", *progress.logloss) : "none");
    console_->Say(line);
  } else if (progress.event == report::RunEvent::kWarning) {
    console_->Say(
        absl::StrCat(style_.colour ? "\x1b[33mwarning:\x1b[0m " : "warning: ", progress.message));
  } else if (!progress.message.empty()) {
    console_->Say(absl::StrFormat("%s  iter %d  %s", report::EventName(progress.event),
                                  progress.iter, progress.message));
  }
}

}  // namespace cistern::cli
