// Files in object stores and HDFS, through Arrow's file systems (remote_absent.cc in builds without
// Arrow). Callers use storage.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern::data {

// Opens a remote file for reading forward. While the caller works on one piece of a few MiB, the
// next one is already being read. Errors: as storage.h.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenRemoteSource(const std::string& path);

// As MatchingFiles, but without an error if nothing matches.
absl::StatusOr<std::vector<std::string>> MatchingRemoteFiles(const std::string& pattern);

// What is at a remote path.
struct RemoteEntry {
  std::string name;  // below the path; empty: the path itself is a file
  uint64_t bytes = 0;
};

// The file at `path`, or the files below it at any depth, sorted by name. Empty: there is nothing.
// kDataLoss: a name that would lead out of a folder of this machine ("..", an empty part).
absl::StatusOr<std::vector<RemoteEntry>> ListRemote(const std::string& path);

// Writes all of `source` to the file `path`, which it replaces. The file appears whole or not at
// all, except in HDFS, where a copy that is cut off leaves a part.
absl::Status WriteRemote(ByteSource& source, const std::string& path);

// Removes a file; OK if there is none.
absl::Status RemoveRemote(const std::string& path);

}  // namespace cistern::data
