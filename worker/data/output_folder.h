// A folder of files that appears under its name only when it is complete.
#pragma once

#include <memory>
#include <string>

#include "common/status.h"

namespace cistern {

// Files are written below a temporary folder beside it; Publish gives that the name. Dropped before
// Publish, it leaves nothing behind.
//
// Threads: one at a time.
class OutputFolder {
 public:
  // path: must not exist, or be an empty folder, or, with `overwrite`, hold a data set:
  // file_list.txt or train/file_list.txt. kInvalidArgument otherwise, with what to do. temporary:
  // where files are written, on the same disk; it is emptied first. Empty: a folder beside `path`.
  static absl::StatusOr<std::unique_ptr<OutputFolder>> Create(const std::string& path,
                                                              bool overwrite,
                                                              const std::string& temporary = "");
  // The same check, and nothing is made.
  static absl::Status Check(const std::string& path, bool overwrite);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Makes a folder below it and returns where; "" is the folder itself.
  absl::StatusOr<std::string> Subfolder(const std::string& name);
  absl::Status Publish();

 private:
  OutputFolder(std::string path, const std::string& temporary);

  std::string path_, temporary_;
  bool published_ = false;
};

}  // namespace cistern
