// Finds a cluster's commits and saved models on this machine's disks, for the commands that need no
// server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/saved_model/model_folder.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::app {

// Opens the state folder at `path`, which is the state folder itself, or a data_dir (or the --out
// folder of an embedded run) that contains it. kNotFound if it is neither.
absl::StatusOr<std::unique_ptr<server::StateFolder>> FindState(FileSystem& files,
                                                               const std::string& path);
// The same for a path that a person gave: kInvalidArgument, with a fix, if it is neither.
absl::StatusOr<std::unique_ptr<server::StateFolder>> FindGivenState(FileSystem& files,
                                                                    const std::string& path);

// The number of the newest commit; kInvalidArgument with a fix if the state has none.
absl::StatusOr<uint64_t> NewestCommit(const server::StateFolder& state);
// Reads the manifest of `commit`; 0: of the newest commit. kInvalidArgument, with a list of the
// existing commits, if there is no such commit. Other errors are of kind kBadCheckpoint (exit code
// 5).
absl::StatusOr<server::ParsedManifest> ReadCommit(const server::StateFolder& state,
                                                  uint64_t commit);

// OK if the file exists and has that size; else kDataLoss with its name.
absl::Status CheckSize(FileSystem& files, const std::string& folder, const std::string& name,
                       uint64_t bytes);

// The digest as sixteen hex digits, as cistern status prints it.
std::string DigestText(uint64_t digest);

// The number of threads to use: `wanted`, or one per core if it is 0; at most kMaxThreads.
int ThreadsOf(uint64_t wanted);

}  // namespace cistern::app
