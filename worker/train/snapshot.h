// The models that a run saves on its way: OUT/snapshot-N after every iteration N that
// solver.snapshot asks for, and HugeCTR's files where the model file asks for them.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"

namespace cistern {

bool IsSnapshotDue(const model::SolverConfig& solver, uint64_t iteration);

// Saves the committed state, which is that after `iteration`. A folder of that name is replaced,
// unless again is set: then it is this snapshot. HugeCTR's files are always written: existing ones
// of that name may belong to another run.
absl::Status SaveSnapshot(FileSystem& files, const model::ModelConfig& config,
                          ParameterClient& client, const std::string& out_dir, uint64_t iteration,
                          bool again);

}  // namespace cistern
