// Several files and folders that appear together.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// They are written under other names, and get their own once all are complete and on disk.
//
// The last one tells readers that the set is there. While the others change their names it is
// absent, so a set that is present is whole, whenever the process dies. After an error the old set
// is unchanged.
//
// Threads: one at a time.
class FileSet {
 public:
  explicit FileSet(FileSystem& files) : files_(files) {}
  // Removes what was written, unless Appear succeeded.
  ~FileSet();
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  // The name under which to write the file or folder `path`. Removes what a killed process left.
  absl::StatusOr<std::string> Stage(const std::string& path);
  static std::string FreshName(const std::string& path);
  // Gives all their names. Existing ones are replaced.
  absl::Status Appear();

 private:
  absl::Status HideOld();
  absl::Status RenameFresh();
  // Reverts what HideOld and RenameFresh have renamed.
  void Undo();

  FileSystem& files_;
  std::vector<std::string> paths_;  // in the order of Stage
  struct Renamed {
    std::string from, to;
  };
  std::vector<Renamed> renamed_;
  bool done_ = false;
};

}  // namespace cistern
