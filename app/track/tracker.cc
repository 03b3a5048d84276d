#include "app/track/tracker.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "app/track/mlflow_log.h"
#include "app/track/tensorboard_log.h"
#include "common/base/log.h"

namespace cistern::app {

const std::vector<std::string>& TrackerNames() {
  static const std::vector<std::string> names = {"tensorboard", "mlflow"};
  return names;
}

absl::StatusOr<std::unique_ptr<Tracker>> OpenTracker(FileSystem& files, const std::string& name,
                                                     const TrackedRun& run) {
  if (name == "tensorboard") return TensorboardLog::Open(files, run);
  if (name == "mlflow") return MlflowLog::Open(files, run);
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat("no such tracker: '", name, "'; there are ",
                                              absl::StrJoin(TrackerNames(), " and "))),
      {"log"});
}

absl::StatusOr<Trackers> Trackers::Open(FileSystem& files, const std::vector<std::string>& names,
                                        const TrackedRun& run) {
  Trackers trackers;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::count(names.begin(), names.end(), names[i]) > 1) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat("the tracker ", names[i], " is named twice")),
          {"log"});
    }
    absl::StatusOr<std::unique_ptr<Tracker>> tracker = OpenTracker(files, names[i], run);
    CISTERN_RETURN_IF_ERROR(AddContext(tracker.status(), names[i]));
    trackers.trackers_.push_back({names[i], *std::move(tracker)});
  }
  return trackers;
}

void Trackers::ForEach(const std::function<absl::Status(Tracker&)>& call) {
  for (Named& named : trackers_) {
    if (named.tracker == nullptr) continue;
    const absl::Status written = call(*named.tracker);
    if (written.ok()) continue;
    LogWarning(absl::StrCat(named.name, " gets no more figures: ", written.message()));
    named.tracker = nullptr;
  }
}

void Trackers::Observe(const Progress& progress) {
  ForEach([&progress](Tracker& tracker) { return tracker.Observe(progress); });
}

void Trackers::End(RunOutcome outcome) {
  ForEach([outcome](Tracker& tracker) { return tracker.End(outcome); });
}

}  // namespace cistern::app
