// A file of lines that grows at its end, and does not grow for ever.
//
// A full file is renamed to PATH.1, replacing the one before, so that both hold at most twice the
// limit. A file that another program has moved away, removed or emptied (logrotate) is not written
// any further: the next line goes to the file that has the path then, or to a new one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file.h"

namespace cistern {

struct LineLogOptions {
  std::string name;  // for messages: "the request log"
  std::string path;
  uint64_t max_bytes = uint64_t{64} << 20;  // of a file
  bool appends = false;  // to a file that exists; else it is renamed like a full one
};

// Threads: one at a time.
class LineLog {
 public:
  // Creates the file, readable by its owner only, or opens it. kInvalidArgument if that fails, or
  // the path is something else than a file.
  static absl::StatusOr<std::unique_ptr<LineLog>> Open(const LineLogOptions& options);

  // Appends `line`, which ends with a newline. After an error no part of it is in the file.
  absl::Status Write(absl::string_view line);

 private:
  explicit LineLog(const LineLogOptions& options) : options_(options) {}
  absl::Status BeginFile();
  absl::Status CreateFile();
  absl::Status FollowPath();
  absl::Status NotAFile() const;

  const LineLogOptions options_;
  FileDescriptor file_;
  uint64_t file_bytes_ = 0;
};

}  // namespace cistern
