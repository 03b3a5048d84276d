#include "worker/train/train_figures.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/base/version.h"
#include "common/metrics/process_figures.h"
#include "worker/report/score_detail.h"

namespace cistern {

void TrainFigures::Observe(const Progress& progress) {
  const absl::MutexLock lock(&mutex_);
  if (progress.event == report::RunEvent::kPass) ObservePass(progress);
  if (progress.logloss) score_ = progress;
  if (progress.lr) learning_rate_ = progress.lr;
  if (progress.epoch) epoch_ = progress.epoch;
  losses_ += progress.event == report::RunEvent::kLost ? 1 : 0;
  recoveries_ += progress.event == report::RunEvent::kRecover ? 1 : 0;
  warnings_ += progress.event == report::RunEvent::kWarning ? 1 : 0;
  if (progress.event == report::RunEvent::kWarning) return;  // some have no counts
  skipped_steps_ = progress.skipped_steps;
  skipped_data_ = progress.skipped_data;
}

void TrainFigures::ObservePass(const Progress& pass) {
  pass_ = pass;
  ++passes_;
  pass_time_ = absl::Now();
  if (pass.idle_seconds) idle_ += *pass.idle_seconds;
  if (pass.busy) busy_seconds_ += pass.busy->seconds;
  evicted_rows_ += pass.evicted_rows.value_or(0);
  expired_rows_ += pass.expired_rows.value_or(0);
}

void TrainFigures::AddSteps(MetricText* text) const {
  const auto read = [](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  text->Counter("steps_total", "Steps of this process that were not skipped.",
                read(live_.trained_steps));
  text->Counter("samples_total", "Samples that the steps of this process trained.",
                read(live_.trained_samples));
  if (!live_.began.load(std::memory_order_relaxed)) return;
  text->Gauge("iteration", "Steps since the start of the run.", read(live_.iterations));
  text->Gauge("run_samples", "Samples since the start of the run.", read(live_.samples));
  text->Gauge("loss", "Loss of the last step.", live_.loss.load(std::memory_order_relaxed));
  text->Family("phase", MetricType::kGauge, "1 for what the training thread does now, 0 for else.");
  const Phase now = live_.phase.load(std::memory_order_relaxed);
  for (size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    text->Sample({{"phase", PhaseName(phase)}}, phase == now ? 1 : 0);
  }
}

void TrainFigures::AddPasses(MetricText* text) const {
  text->Counter("passes_total", "Passes that this process has committed.", passes_);
  text->Gauge("last_pass_time_seconds", "Unix time of the last committed pass; 0: none yet.",
              absl::ToDoubleSeconds(pass_time_ - absl::UnixEpoch()));
  text->Family("idle_seconds_total", MetricType::kCounter,
               "Seconds without a step to run between passes, by what the device waited for.");
  text->Sample({{"cause", "data"}}, idle_.data);
  text->Sample({{"cause", "pull"}}, idle_.pull);
  text->Sample({{"cause", "carry_over"}}, idle_.carry_over);
  text->Sample({{"cause", "commit"}}, idle_.commit);
  text->Counter("busy_seconds_total",
                "Seconds in which the device computed training steps, by its own clock.",
                busy_seconds_);
  text->Counter("evicted_rows_total",
                "Rows above max_rows that the commits of this process have removed.",
                evicted_rows_);
  text->Counter("expired_rows_total",
                "Rows past expire_passes or expire_days that the commits of this process have "
                "removed.",
                expired_rows_);
  if (!pass_) return;
  if (pass_->pass) text->Gauge("pass", "The last committed pass.", *pass_->pass);
  if (pass_->rows) text->Gauge("pass_rows", "Distinct keys of the last pass.", *pass_->rows);
  if (pass_->behind_messages) {
    text->Gauge("behind_messages", "Messages of the stream (files of a folder) that are not read.",
                *pass_->behind_messages);
  }
  if (pass_->behind_seconds) {
    text->Gauge("behind_seconds", "Age of the last sample of the stream that was read.",
                *pass_->behind_seconds);
  }
}

void TrainFigures::AddScores(MetricText* text) const {
  if (learning_rate_) text->Gauge("learning_rate", "Of the last step.", *learning_rate_);
  if (epoch_) text->Gauge("epoch", "Completed epochs, with a fraction.", *epoch_);
  if (!score_) return;
  text->Gauge("logloss", "Log loss of the last evaluation.", *score_->logloss);
  if (score_->auc) text->Gauge("auc", "AUC of the last evaluation.", *score_->auc);
  if (const auto ratio =
          score_->scores ? score_->scores->calibration_ratio() : score_->calibration_ratio) {
    text->Gauge("calibration_ratio",
                "Sum of predictions over sum of labels of the last evaluation; 1 is calibrated.",
                *ratio);
  }
  if (score_->metrics.empty()) return;
  text->Family("score", MetricType::kGauge,
               "Other metrics of the last evaluation (solver.eval_metrics).");
  for (const model::MetricValue& metric : score_->metrics) {
    if (metric.value) text->Sample({{"metric", metric.name}}, *metric.value);
  }
}

void TrainFigures::AddTroubles(MetricText* text) const {
  text->Counter("losses_total", "Servers or workers lost.", losses_);
  text->Counter("recoveries_total", "Returns to the last commit after a loss.", recoveries_);
  text->Counter("warnings_total", "Warnings of the run (cli.md lists them).", warnings_);
  text->Gauge("skipped_steps", "Steps of the run that were skipped: loss or gradient not finite.",
              skipped_steps_);
  text->Family("skipped_files", MetricType::kGauge, "Data files left out by this process.");
  for (const auto& [cause, files] : skipped_data_) text->Sample({{"cause", cause}}, files);
}

std::string TrainFigures::Text() const {
  MetricText text("cistern_train_");
  text.Family("info", MetricType::kGauge, "This worker among those of the run, and the version.");
  text.Sample({{"rank", absl::StrCat(rank_)},
               {"workers", absl::StrCat(workers_)},
               {"run", run_},
               {"version", kVersion}},
              1);
  AddSteps(&text);
  {
    const absl::MutexLock lock(&mutex_);
    AddPasses(&text);
    AddScores(&text);
    AddTroubles(&text);
  }
  AddProcessFigures(&text);
  return text.Take();
}

}  // namespace cistern
