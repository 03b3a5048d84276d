// Prints the progress of a run, for a person at a terminal or for a log.
//
// Terminal: one line that updates in place, and a permanent line for each evaluation.
// Log: a line of key=value pairs for each event.
#pragma once

#include <optional>
#include <string>

#include "cli/terminal/report.h"
#include "worker/train/jobs.h"

namespace cistern {

// "event=train iter=1000 samples=512000 loss=0.34567 lr=0.001 samples_per_s=45678". Fields without
// a value are left out.
std::string PlainLine(const Progress& progress);

// " 42%  iter 4200/10000  123k samples/s  loss 0.3412  auc 0.9812  2m10s left", cut to `columns`.
// auc: from the last evaluation.
std::string TerminalLine(const Progress& progress, std::optional<double> auc, int columns);

// "ne           0.912000\n": one line per metric, the name padded to at least `width` columns. An
// undefined metric prints "none" and the reason.
std::string MetricLines(const MetricValues& metrics, int width);

// "3% (commit 2%, data 1%)": the share of time that the device waited between passes, and for what.
std::string IdleText(const IdleTimes& idle);

// "3.2s", "2m10s", "1h05m".
std::string DurationText(double seconds);
// "980", "45.7k", "1.23M", "20.0G".
std::string CountText(double count);
// "512 B", "1.5 MiB".
std::string BytesText(uint64_t bytes);

// Threads: one at a time (the training thread).
class ProgressPrinter {
 public:
  // console: outlives this.
  explicit ProgressPrinter(Console* console) : console_(console) {}
  void Show(const Progress& progress);
  // Makes the updating line permanent, in its last state.
  void Finish();

 private:
  Console* const console_;
  std::optional<double> auc_;
  std::string line_;  // the updating line
};

}  // namespace cistern
