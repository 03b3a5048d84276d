// MLflow's file store (docs/formats.md): a folder that `mlflow ui --backend-store-uri` shows, with
// one experiment, "Default", and a folder for each run.
//
// A run that is resumed continues its folder; what later steps had said is removed.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "app/track/tracker.h"

namespace cistern::app {

// Threads: one at a time.
class MlflowLog : public Tracker {
 public:
  // Opens the run of this id in FOLDER/mlruns, or creates it.
  static absl::StatusOr<std::unique_ptr<Tracker>> Open(FileSystem& files, const TrackedRun& run);

  absl::Status Observe(const Progress& progress) override;
  absl::Status End(RunOutcome outcome) override;

 private:
  MlflowLog(FileSystem& files, const TrackedRun& run, const std::string& store);
  absl::Status Begin(const TrackedRun& run);
  absl::Status WriteExperiment(const std::string& folder);
  absl::Status WriteRun(int status, int64_t end_ms);
  absl::Status WriteParameters(const TrackedRun& run);
  // Removes the values after `iter` from the files of figures.
  absl::Status TakeBack(uint64_t iter);
  // The file of a figure, open at its end.
  absl::StatusOr<WritableFile*> FileOf(const std::string& figure);

  FileSystem& files_;
  const std::string run_id_, name_, store_, folder_;
  int64_t start_ms_ = 0;
  std::map<std::string, std::unique_ptr<WritableFile>> open_;  // by figure
};

// MLflow's id of a run of ours: 32 hexadecimal digits.
std::string MlflowRunId(const std::string& id);

}  // namespace cistern::app
