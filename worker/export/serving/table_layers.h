// The layers of a table of a serving folder, opened by a writer of versions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/mapped_file.h"
#include "common/serving/rows_file.h"
#include "common/serving/serving_version.h"

namespace cistern {

// The files whose bytes matched their hash when this process read them, as they were then. A file
// that nobody has touched since need not be read again.
//
// Threads: one at a time.
class VerifiedFiles {
 public:
  bool Contains(const std::string& path, const FileIdentity& identity) const;
  void Add(const std::string& path, const FileIdentity& identity) { files_[path] = identity; }
  // Forgets all but the layers of `version`.
  void KeepOnly(const ServingVersion& version);

 private:
  std::map<std::string, FileIdentity> files_;  // by ServingFile::path
};

// Threads: any thread.
class TableLayers {
 public:
  // Opens `files`, oldest first, below the serving folder `root`. verify: reads those of changes,
  // all but the oldest, unless they are among `verified` (may be null), and adds them there.
  // kDataLoss: one is missing, truncated, of another shape or, if read, corrupt.
  static absl::StatusOr<TableLayers> Open(const std::string& root,
                                          const std::vector<ServingFile>& files,
                                          const RowsShape& shape, bool verify,
                                          VerifiedFiles* verified);

  const std::vector<RowsView>& views() const { return views_; }  // oldest first
  // The rows of all layers but the oldest.
  uint64_t changed_rows() const;

 private:
  absl::Status Add(const std::string& root, const ServingFile& file, const RowsShape& shape);
  absl::Status VerifyLast(const ServingFile& file, VerifiedFiles* verified) const;

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<RowsView> views_;
};

}  // namespace cistern
