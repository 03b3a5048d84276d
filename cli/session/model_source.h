// What the commands that use a trained model share: the model file, its overrides, and where its
// values come from.
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

// MODEL.json, --set, --threads, --device, --check-ops, and the flags of a fleet.
void AddModelFlags(Command& command, ModelFlags* flags);

// Reads MODEL.json with its overrides.
absl::StatusOr<ModelConfig> ReadModelConfig(const ModelFlags& flags);

// The model folder that `dir` means: the --out folder of a training (it holds model/), or a model
// folder itself. kInvalidArgument if it is neither.
absl::StatusOr<std::string> FindModelFolder(const std::string& dir);

// Servers that hold the values of a trained model.
//
// Embedded: they are loaded from model_dir. A fleet: its committed state is used as it is; if it
// holds no row, model_dir is loaded into it first.
// kInvalidArgument: there is nothing to load from. 5 (FromCheckpoint): the folder is corrupt.
absl::StatusOr<std::unique_ptr<FleetSession>> OpenTrainedFleet(const ModelFlags& flags,
                                                               const ModelConfig& config,
                                                               const std::string& model_dir,
                                                               Console& console);

// The job options that these flags ask for. kNotFound: --device=cuda, and there is no GPU.
absl::StatusOr<JobOptions> JobOptionsOf(const ModelFlags& flags);

}  // namespace cistern
