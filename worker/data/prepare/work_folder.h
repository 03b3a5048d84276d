// A folder for the intermediate files of a long job, so that a killed run can be resumed.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::data {

// The folder is "<path>.partial", next to the job's result, and stores the job's plan. Opened with
// the same plan, it still holds the files of the earlier run; use only complete ones, which are
// those with their final name (new_file.h). Without the same plan, the folder is emptied.
//
// One process at a time: the folder is locked until this is destroyed.
//
// Threads: any, except for Remove, which must be the last call.
class WorkFolder {
 public:
  // path: the job's result. plan: everything that determines the contents of the files. files:
  // outlives this. kInvalidArgument: another process holds the lock.
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Open(FileSystem& files,
                                                          const std::string& path,
                                                          const std::string& plan);
  // Keeps the files for the next run, unless Remove was called.
  ~WorkFolder() = default;
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  // The path of a file in the folder.
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Whether the folder continues the work of an earlier run.
  bool goes_on() const { return goes_on_; }
  void Remove();

 private:
  WorkFolder(FileSystem& files, std::string path, std::unique_ptr<FileLock> lock)
      : files_(files), path_(std::move(path)), lock_(std::move(lock)) {}

  FileSystem& files_;
  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
  bool goes_on_ = false;
};

}  // namespace cistern::data
