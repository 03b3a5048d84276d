// Files and folders of a model that get their names once they are whole and on disk.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// A file that grows at its end. Bytes go to "<path>.tmp" through a buffer; Close has them on disk
// and then gives the file its name, in place of an older one. One that is dropped before Close
// leaves nothing behind. Errors name the path; the first one makes the file dead.
//
// Threads: one at a time.
class NewFile {
 public:
  // Makes the folder that `path` lies in.
  static absl::StatusOr<std::unique_ptr<NewFile>> Create(FileSystem& files,
                                                         const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  absl::Status Close();

  uint64_t bytes() const { return bytes_; }

 private:
  NewFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> out)
      : files_(files), path_(std::move(path)), out_(std::move(out)) {}
  absl::Status Flush();

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> out_;  // null once it has its name
  std::string buffer_;
  uint64_t bytes_ = 0;
};

// Gives the folder `fresh` the name `folder`; what stood there is moved to "<folder>.old" first, so
// that at every moment one of them is whole, and then removed.
absl::Status ReplaceFolder(FileSystem& files, const std::string& fresh, const std::string& folder);

}  // namespace cistern
