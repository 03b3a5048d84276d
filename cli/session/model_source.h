// Flags and functions shared by the commands that use a model: the model file with its overrides,
// and the servers that hold its values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/session/fleet_session.h"
#include "cli/terminal/command_line.h"
#include "worker/model/config/model_config.h"
#include "worker/train/jobs.h"

namespace cistern {

struct ModelFlags {
  std::string config;            // MODEL.json
  std::vector<std::string> set;  // --set
  uint64_t threads = 0;
  std::string device = "cpu";
  bool check_ops = false;
  FleetFlags fleet;
};

// Adds MODEL.json and --set.
void AddModelFileFlags(Command& command, ModelFlags* flags);

// Adds MODEL.json, --set, --threads, --device, --check-ops, and the fleet flags.
void AddModelFlags(Command& command, ModelFlags* flags);

// Reads MODEL.json and applies the overrides.
absl::StatusOr<ModelConfig> ReadModelConfig(const ModelFlags& flags);

// If MODEL is a run folder, replaces it by the folder's model file. model_dir: becomes that folder
// if it is empty and no servers are named. kInvalidArgument: MODEL is a folder of another kind.
absl::Status TakeRunFolder(ModelFlags* flags, std::string* model_dir);

// The text of MODEL.json with the overrides applied. Errors as ReadModelConfig.
absl::StatusOr<std::string> ReadModelFile(const ModelFlags& flags);

// Resolves `dir` to a model folder: it is one itself, or the --out folder of a training run, which
// contains model/. kInvalidArgument if it is neither.
absl::StatusOr<std::string> FindModelFolder(const std::string& dir);

// Opens servers that hold the values of a trained model.
//
// config: takes over what does not change predictions, such as optimizer constants, from the
// trained model (trained_constants.h). Embedded servers load model_dir. A fleet's committed state
// is used unchanged; only if the fleet holds no row is model_dir loaded into it first.
// kInvalidArgument: there is nothing to load from. An error of kind kBadCheckpoint (exit code 5):
// the folder is corrupt.
absl::StatusOr<std::unique_ptr<FleetSession>> OpenTrainedFleet(const ModelFlags& flags,
                                                               ModelConfig* config,
                                                               const std::string& model_dir,
                                                               Console& console);

// The job options that these flags request. kNotFound: --device=cuda without a GPU.
absl::StatusOr<JobOptions> JobOptionsOf(const ModelFlags& flags);

}  // namespace cistern
