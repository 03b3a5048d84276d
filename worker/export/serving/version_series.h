// The versions of one training in one serving folder, one after another.
#pragma once

#include "worker/export/serving/base_merge.h"
#include "worker/export/serving/serving_model.h"

namespace cistern {

// Writes each version as changes of an older one (WriteServingChanges). Tables are written as a
// whole, too, so that the number of their layers stays small, but no version waits for that: a new
// base is merged beside further versions, and the next version after its end names it. A version
// waits only if it would be the 64th layer above a base, because commits come faster than bases are
// written.
//
// Threads: one at a time.
class VersionSeries {
 public:
  // files: outlives this. root: the serving folder.
  VersionSeries(FileSystem* files, const std::string& root) : files_(*files), bases_(files, root) {}

  // As WriteServingChanges; changes.whole and changes.verified are set here.
  absl::StatusOr<ServingWritten> WriteChanges(const model::ModelConfig& config,
                                              const ModelText& text, CommittedModel& model,
                                              ServingChanges changes,
                                              const ServingOptions& options);
  // Waits for the base that is being written. The next version names it.
  void AwaitBases() const { bases_.AwaitEnd(); }

 private:
  FileSystem& files_;
  VerifiedFiles verified_;
  BaseMerge bases_;
};

}  // namespace cistern
