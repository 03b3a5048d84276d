// The model that a job works with: the model file with its overrides, and the servers that hold its
// values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/train/jobs.h"

namespace cistern::app {

struct ModelOptions {
  std::string config;            // the path of the model file
  std::vector<std::string> set;  // overrides, "solver.batchsize=4096"
  uint64_t threads = 0;
  std::string device = "cpu";
  bool check_ops = false;
  FleetOptions fleet;
};

// Reads the model file and applies the overrides.
absl::StatusOr<model::ModelConfig> ReadModelConfig(const ModelOptions& options);

// If options->config is a run folder, replaces it by the folder's model file. model_dir: becomes
// that folder if it is empty and no servers are named. kInvalidArgument: it is a folder of another
// kind.
absl::Status ResolveRunFolder(ModelOptions* options, std::string* model_dir);

// The text of the model file with the overrides applied. Errors as ReadModelConfig.
absl::StatusOr<std::string> ReadModelFile(const ModelOptions& options);

// Resolves `dir` to a model folder: it is one itself, or the folder of a training run, which
// contains model/. kInvalidArgument if it is neither.
absl::StatusOr<std::string> FindModelFolder(const std::string& dir);

// Opens servers that hold the values of a trained model.
//
// config: takes over what does not change predictions, such as optimizer constants, from the
// trained model (trained_constants.h). Embedded servers load model_dir. A fleet's committed state
// is used unchanged; only if the fleet holds no row is model_dir loaded into it first.
// kInvalidArgument: there is nothing to load from. An error of kind kBadCheckpoint (exit code 5):
// the folder is corrupt.
absl::StatusOr<std::unique_ptr<FleetSession>> OpenTrainedFleet(const ModelOptions& options,
                                                               model::ModelConfig* config,
                                                               const std::string& model_dir,
                                                               const OnNote& note);

// The job options that these options request. kNotFound: a GPU is requested and there is none.
absl::StatusOr<JobOptions> JobOptionsOf(const ModelOptions& options);

}  // namespace cistern::app
