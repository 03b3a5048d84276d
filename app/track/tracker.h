// Writes a training's figures for another program that shows them: TensorBoard, MLflow.
//
// Trackers see the events of the run (Progress) and write files; they need no server and none of
// the other programs' code.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/train/jobs.h"

namespace cistern::app {

// A training run as trackers name it.
struct TrackedRun {
  std::string folder;    // for the tracker's files; created if missing
  std::string id, name;  // of the run; the id is one word
  // Every value of the model file, by path.
  std::vector<std::pair<std::string, std::string>> values;
};

// How a run ended.
enum class RunOutcome { kFinished, kInterrupted, kFailed };

// Threads: one at a time.
class Tracker {
 public:
  virtual ~Tracker() = default;
  // An event. "resume" and "recover" mean that what was written for later steps did not happen.
  virtual absl::Status Observe(const Progress& progress) = 0;
  virtual absl::Status End(RunOutcome outcome) = 0;
};

// The names of trackers: "tensorboard", "mlflow".
const std::vector<std::string>& TrackerNames();

// files: outlives the tracker. kInvalidArgument: no such tracker, or a folder that cannot be used.
absl::StatusOr<std::unique_ptr<Tracker>> OpenTracker(FileSystem& files, const std::string& name,
                                                     const TrackedRun& run);

// All trackers of a run. A tracker that fails is reported once in the log, and left out from then
// on: it does not fail the run.
//
// Threads: one at a time.
class Trackers {
 public:
  // As OpenTracker. names: none may repeat.
  static absl::StatusOr<Trackers> Open(FileSystem& files, const std::vector<std::string>& names,
                                       const TrackedRun& run);

  void Observe(const Progress& progress);
  void End(RunOutcome outcome);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Tracker> tracker;
  };
  void ForEach(const std::function<absl::Status(Tracker&)>& call);

  std::vector<Named> trackers_;
};

}  // namespace cistern::app
