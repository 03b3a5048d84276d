// Where a long job keeps what it has done so far, so that a run that was killed can be gone on
// with.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// "<path>.partial", beside what the job makes, with the job's plan in it: whoever opens it with the
// same plan finds the files that an earlier run left, and must take only those that are whole (that
// have their name: output_file.h). With another plan, or none, the folder is emptied first.
//
// One process at a time: the folder is locked until this is destroyed.
//
// Threads: any; but Remove, which comes last.
class WorkFolder {
 public:
  // path: of the job's result. plan: all that decides what its files hold. files:
  // outlives this. kInvalidArgument: another process works there.
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Open(FileSystem& files,
                                                          const std::string& path,
                                                          const std::string& plan);
  // What was not removed stays, for the next run.
  ~WorkFolder() = default;
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  // Of a file in it.
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
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

}  // namespace cistern
