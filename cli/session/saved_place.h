// Where a cluster's commits and saved models lie on this machine's disks, for the commands that
// need no server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/saved_model/model_folder.h"
#include "server/checkpoint/state_folder.h"

namespace cistern {

// The state that `path` means: a data_dir (or the --out folder of an embedded training), or the
// state folder in it. kNotFound if it is neither.
absl::StatusOr<std::unique_ptr<StateFolder>> FindState(FileSystem& files, const std::string& path);

// The number of its newest commit; kInvalidArgument with a fix if it has none.
absl::StatusOr<uint64_t> NewestCommit(const StateFolder& state);
// The newest commit, or `commit` where that is not 0; kInvalidArgument, with those that are there,
// if it is not. Other errors: 5.
absl::StatusOr<ParsedManifest> ReadCommit(const StateFolder& state, uint64_t commit);

// OK if the file is there with that size; kDataLoss that names it.
absl::Status CheckSize(FileSystem& files, const std::string& folder, const std::string& name,
                       uint64_t bytes);

// Sixteen hex digits, as cistern status shows digests.
std::string DigestText(uint64_t digest);

// As many threads as `wanted`, or, 0, as there are cores.
int ThreadsOf(uint64_t wanted);

}  // namespace cistern
