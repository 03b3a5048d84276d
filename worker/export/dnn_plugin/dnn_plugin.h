// Export of the dense parameters as Paddle's serving programs load them (spec/003 section 2.2.3).
//
//   FOLDER/fc1.w_0, FOLDER/fc1.b_0 ...   a tensor each (paddle_tensor.h)
//   FOLDER/parameters.txt                the names in the order of the layers, with their shapes:
//                                        "fc1.w_0 10,400"
//   FOLDER/dnn_plugin.json               what they were made from (export_manifest.h), and the hash
//                                        of each file
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/export/committed_model.h"
#include "worker/model/config/model_config.h"

namespace cistern {

struct DnnPluginWritten {
  uint64_t files = 0, numbers = 0, bytes = 0;  // of tensors
};

// Writes the committed state. The folder appears as a whole, and replaces that of an earlier
// export. Memory: the dense tables twice.
// kInvalidArgument: the model has no dense parameters; errors of PaddleParametersOf.
// kAlreadyExists: the folder holds anything else. kAborted: CommittedModel::Recheck.
absl::StatusOr<DnnPluginWritten> WriteDnnPlugin(FileSystem& files, const model::ModelConfig& config,
                                                CommittedModel& model, const std::string& folder);

}  // namespace cistern
