// What copies of states share (push_state.h, pull_state.h, adopt_manifest.h): the names of their
// files, and how one is found, read and verified.
//
// Threads: any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/state/copy_place.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::app {

// Below a state folder.
std::string ManifestName(uint64_t commit);
std::string DataName(const std::string& file);

// kDataLoss becomes kind kBadCheckpoint; other errors stay as they are.
absl::Status BadFile(const absl::Status& status);

// Reads every block of the row file in `folder`. kDataLoss, with the path: it is missing, another
// one, or corrupt.
absl::Status VerifyFile(FileSystem& files, const std::string& folder, const v1::RowFile& file);

// The manifest in a file, or the newest one of a state. kInvalidArgument: `path` is neither.
absl::StatusOr<server::ParsedManifest> ManifestAt(FileSystem& files, const std::string& path);

// The manifest of a commit of the copy, by way of a file in `folder`. kNotFound: the copy has none.
absl::StatusOr<server::ParsedManifest> CopiedManifest(CopyPlace& place, uint64_t commit,
                                                      FileSystem& files, const std::string& folder);

// The locks of a state's servers. kFailedPrecondition, with a fix: one of them runs.
absl::StatusOr<std::vector<std::unique_ptr<FileLock>>> LockServers(FileSystem& files,
                                                                   const std::string& state,
                                                                   uint32_t server_num);

}  // namespace cistern::app
