// Whole files and folders between this machine and object stores or HDFS, for what is not read or
// written as a stream: saved models, exports, data sets that are made.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern::data {

// "s3://b/set?region=x" and "part-0" give "s3://b/set/part-0?region=x".
std::string RemoteChild(absl::string_view folder, absl::string_view name);
// "s3://b/set/part-0?region=x" gives "s3://b/set?region=x".
std::string RemoteParent(absl::string_view path);
// The last name of a remote path: "set" of "s3://b/set/?region=x".
std::string RemoteName(absl::string_view path);

// Called before each file.
using TreeProgress = std::function<void(const std::string& name, size_t done, size_t all)>;

// Copies the file or folder at `path` to `local`, which must not exist. Sizes are checked; contents
// by those who read them, because every format has checksums. kNotFound: there is nothing.
absl::Status CopyFromRemote(const std::string& path, const std::string& local,
                            const TreeProgress& progress);

// OK if CopyToRemote may write to `path`: nothing is there, or only an unfinished copy.
// kAlreadyExists otherwise: remote files are never replaced.
absl::Status CheckRemoteIsNew(const std::string& path);

// Copies the file or folder `local` to `path`. The files that make a folder valid are copied last
// (UploadRank), so that a reader finds all or nothing. If a file fails, those that were copied are
// removed. A copy that is killed leaves ".unfinished", and the next copy to `path` first removes
// what it left. Files named *.tmp and locks are left out. Errors: as CheckRemoteIsNew and
// storage.h.
absl::Status CopyToRemote(const std::string& local, const std::string& path,
                          const TreeProgress& progress);

// When a file of a folder is copied: 0: first. 1: a list or manifest that names the others. 2: HEAD
// of a serving folder, which names a manifest.
int UploadRank(absl::string_view name);

}  // namespace cistern::data
