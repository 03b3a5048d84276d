// What an export reads: a model file, and the committed state of the model that it describes.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "app/fleet/fleet_session.h"
#include "app/model/model_source.h"
#include "worker/export/committed_model.h"
#include "worker/model/config/model_config.h"

namespace cistern::app {

struct ExportOptions {
  ModelOptions model;
  std::string model_dir;  // of a saved model, or of a run
  std::string state;      // "DIR[@COMMIT]"
};

// Threads: one at a time.
struct ExportSource {
  model::ModelConfig config;
  std::unique_ptr<FleetSession> fleet;  // null: the state was read from files
  std::unique_ptr<CommittedModel> model;
};

// Opens what the options name: a saved model, a commit, or the state of a fleet. The files of a
// fleet that keeps its commits on this machine are read instead of its tables: that is one state
// even while a training run commits.
//
// needs_fleet: servers must be named, and the tables of the fleet are read, because the caller
// changes them afterwards or needs their memory caches. stop: once it is set, reads of the state
// return kCancelled; it outlives the result; null: never.
// kInvalidArgument: not exactly one source, or the state does not belong to the model file. Errors
// of kind kBadCheckpoint (exit code 5): the files are corrupt.
absl::StatusOr<ExportSource> OpenExportSource(const ExportOptions& options,
                                              bool needs_fleet = false,
                                              const std::atomic<bool>* stop = nullptr);

// If options->model.config is a run folder, names its model file, and its trained model unless
// another is named.
absl::Status ResolveRunModel(ExportOptions* options);

// kInvalidArgument, with the first difference, unless the tables of `model` are those of `config`.
absl::Status CheckModelFile(const model::ModelConfig& config, const CommittedModel& model);

// kUnimplemented if the keys of an input have weights, which `reader`, a program that reads the
// export, would leave out: its predictions would be others.
absl::Status RefuseKeyWeights(const model::ModelConfig& config, const std::string& reader);

// The folder that an export writes: an absolute path without a slash at its end.
std::string FolderOf(const std::string& out);

}  // namespace cistern::app
