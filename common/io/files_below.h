// A file system that works below one folder only.
//
// For names that a request brings: whatever is done with them later, each path is resolved below
// `root` without following a symbolic link (PathBelow). So code that knows nothing of requests,
// such as that of saved models, cannot be led out of the folder, not even by a link that appears
// while it works.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/io/file_system.h"

namespace cistern {

// Threads: any thread, if `files` allows it.
class FilesBelow : public FileSystem {
 public:
  // files: does the work; outlives this. root: a folder that the user chose; it may be a link.
  FilesBelow(FileSystem* files, const std::string& root);

  // All calls: as those of `files`; kInvalidArgument if a path does not begin with `root`.
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivate(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) override;
  absl::Status MakeFolders(const FilePath& path) override;
  absl::Status Publish(const FilePath& from, const FilePath& to) override;
  absl::Status Replace(const FilePath& from, const FilePath& to) override;
  absl::Status Exchange(const FilePath& a, const FilePath& b) override;
  absl::Status Remove(const FilePath& path) override;
  absl::Status SyncFolder(const FilePath& path) override;
  absl::StatusOr<std::vector<std::string>> List(const FilePath& folder) override;
  absl::StatusOr<bool> Exists(const FilePath& path) override;
  absl::Status MakeLink(const std::string& target, const FilePath& path) override;
  absl::StatusOr<std::string> ReadLink(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const FilePath& path) override;

 private:
  absl::StatusOr<FilePath> Below(const FilePath& path) const;

  FileSystem* const files_;
  const std::string root_;  // without a slash at its end
};

}  // namespace cistern
