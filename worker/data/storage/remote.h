// Files in object stores and HDFS, through Arrow's file systems (remote_absent.cc in builds without
// Arrow). Callers use storage.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern {

// Opens a remote file for reading forward. While the caller works on one piece of a few MiB, the
// next one is already being read. Errors: as storage.h.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenRemoteSource(const std::string& path);

// As MatchingFiles, but without an error if nothing matches.
absl::StatusOr<std::vector<std::string>> MatchingRemoteFiles(const std::string& pattern);

}  // namespace cistern
