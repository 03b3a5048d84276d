// Whether servers hold a saved model already, to the last bit: told by the digests that its json
// files record, without reading a row of it.
#pragma once

#include <string>

#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// False too where that cannot be told: the folder cannot be read, or its files have no digests
// (older saves, formats that do not hold every bit). Errors are those of the servers.
absl::StatusOr<bool> HoldsModel(FileSystem& files, ParameterClient& client,
                                const std::string& folder);

// The same for the model `name` below the servers' data_dir. False unless that folder is on this
// machine too (one machine, or a shared file system): that a folder of the same path is the same
// folder is told by the servers' newest durable commit in it.
absl::StatusOr<bool> HoldsSavedModel(FileSystem& files, ParameterClient& client,
                                     const std::string& name);

}  // namespace cistern
