// An output folder that appears under its name only when it is complete.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::data {

// Files are written to a temporary folder next to the final one; Publish renames it. Without
// Publish, the destructor removes the temporary folder.
//
// Threads: one at a time.
class OutputFolder {
 public:
  // path: must not exist, be an empty folder, or, with `overwrite`, hold a data set (file_list.txt
  // or train/file_list.txt); kInvalidArgument otherwise, with the fix. Files are written to
  // `path`.partial-set, which is emptied first; kInvalidArgument if another process writes there.
  // files: outlives this.
  static absl::StatusOr<std::unique_ptr<OutputFolder>> Create(FileSystem& files,
                                                              const std::string& path,
                                                              bool overwrite);
  // The checks of Create on `path`, without creating anything.
  static absl::Status Check(const std::string& path, bool overwrite);
  // kInvalidArgument: one of the input files `read` is in `path`; replacing the folder would delete
  // it.
  static absl::Status CheckSpares(const std::string& path, const std::vector<std::string>& read);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Creates a subfolder and returns its temporary path; "" returns the folder itself.
  absl::StatusOr<std::string> Subfolder(const std::string& name);
  // Renames the folder to its final name. After OK, files and names survive a power loss.
  absl::Status Publish();

 private:
  OutputFolder(FileSystem& files, std::string path);
  // Locks and empties temporary_.
  absl::Status Take();

  FileSystem& files_;
  std::string path_, temporary_;
  std::vector<std::string> subfolders_;
  std::unique_ptr<FileLock> lock_;  // on temporary_; null once published
};

}  // namespace cistern::data
