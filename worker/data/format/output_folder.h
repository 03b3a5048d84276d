// A folder of files that appears under its name only when it is complete.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// Files are written below a temporary folder beside it; Publish gives that the name. Dropped before
// Publish, it leaves nothing behind.
//
// Threads: one at a time.
class OutputFolder {
 public:
  // path: must not exist, or be an empty folder, or, with `overwrite`, hold a data set:
  // file_list.txt or train/file_list.txt. kInvalidArgument otherwise, with what to do. Files
  // are written to `path`.partial-set, which is emptied first; kInvalidArgument while another
  // process writes there. files: outlives this.
  static absl::StatusOr<std::unique_ptr<OutputFolder>> Create(FileSystem& files,
                                                              const std::string& path,
                                                              bool overwrite);
  // The same check, and nothing is made.
  static absl::Status Check(const std::string& path, bool overwrite);
  // kInvalidArgument: one of the files `read` lies below `path`, and would be gone with what stands
  // there.
  static absl::Status CheckSpares(const std::string& path, const std::vector<std::string>& read);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Makes a folder below it and returns where; "" is the folder itself.
  absl::StatusOr<std::string> Subfolder(const std::string& name);
  // Once it is OK, files and names survive a loss of power.
  absl::Status Publish();

 private:
  OutputFolder(FileSystem& files, std::string path);
  // Locks and empties temporary_.
  absl::Status Take();

  FileSystem& files_;
  std::string path_, temporary_;
  std::vector<std::string> subfolders_;
  std::unique_ptr<FileLock> lock_;  // of temporary_; none once it is published
};

}  // namespace cistern
