// Reports about training runs: what the slots of a model contribute, and a page about several runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

struct StudyOptions {
  std::string run;                // the folder of the run, whose record names the model file
  std::vector<std::string> data;  // empty: the model's eval_source
  uint64_t samples = 100000;      // that are read
  uint64_t threads = 0;
};

// Computes what each slot and column contributes to the predictions of a run, and writes it to
// RUN/importance.json, from where its page shows it. kInvalidArgument: an older version wrote the
// run. Other errors: those of model and data.
absl::Status StudyRun(const StudyOptions& options, const JobCalls& calls);

struct RunReportOptions {
  std::vector<std::string> runs;    // folders
  std::string out;                  // the page; empty: RUN/report.html of the one run
  std::vector<std::string> tables;  // in which the texts of keys are searched
};

// Writes one HTML page about training runs; returns its path. kInvalidArgument: several runs and no
// name of the page, or the name is that of a device. kNotFound: a run is not there.
absl::StatusOr<std::string> WriteRunReport(const RunReportOptions& options, const JobCalls& calls);

}  // namespace cistern::app
