// What rows the servers hold, by the digests of their tables; whether they are those of a saved
// model.
#pragma once

#include <optional>
#include <string>

#include "common/io/file_system.h"
#include "common/saved_model/rows_place.h"
#include "proto/checkpoint.pb.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

// The committed rows of the servers: their pass, and the row count and digest of each table. The
// servers read every row.
absl::StatusOr<v1::IncrementState> StateOn(ParameterClient& client);

// Whether the servers hold exactly the rows of a saved model: compares the digests in its json
// files, without reading its rows. Also false if the comparison is impossible: the folder cannot be
// read, or its files record no digests (older saves, lossy formats). Errors come from the servers
// only.
absl::StatusOr<bool> HoldsModel(FileSystem& files, ParameterClient& client,
                                const std::string& folder);

// The same for the model `name` below the servers' data_dir. False unless this machine can read
// that folder (same machine, or a shared file system). A folder with the same path counts as the
// same folder only if it contains the servers' newest durable commit.
absl::StatusOr<bool> HoldsSavedModel(FileSystem& files, ParameterClient& client,
                                     const std::string& name);

// The newest durable commit of the servers, if this machine can read their data_dir.
std::optional<RowsPlace> LocalCommitOf(FileSystem& files, ParameterClient& client);

}  // namespace cistern::app
