// The files of a run folder that say what the run was: run.json and report.html
// (docs/formats.md).
#pragma once

#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/client/parameter_client.h"
#include "worker/report/run_record.h"
#include "worker/train/jobs.h"

namespace cistern::app {

// The id of a run: that of the run in the folder, if this process continues it, else a new one of
// 16 hexadecimal digits.
std::string RunIdOf(const std::string& folder, bool resume);

// What is known when a run starts. The caller adds what it was asked for: set, device, servers_at.
// started: that of an earlier process which this run continues, if the folder of the run holds its
// record and options.resume is set; else now.
report::RunRecord BeginRecord(const model::ModelConfig& config, const ParameterClient& client,
                              const JobOptions& options);

// Adds what is known at the end.
void EndRecord(const TrainSummary& summary, const ParameterClient& client,
               report::RunRecord* record);

// Writes RUN/run.json.
absl::Status WriteRecord(const std::string& folder, const report::RunRecord& record);

// Writes what a person reads about the run, and returns the path of the page. The run is finished
// and saved: a failure only warns, and returns "".
std::string WriteRunFiles(const std::string& folder, const TrainSummary& summary,
                          const ParameterClient& client, report::RunRecord record,
                          const OnNote& note);

}  // namespace cistern::app
