// Where a copy of a state is: a data_dir of this machine, or one below s3://, gs:// or hdfs://. The
// copy has the names of the state (server/checkpoint/state_folder.h), so tools and servers can use
// it as it is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::app {

// Files are named below the state folder: "data/base-1-1-0", "manifest/<20 digits>".
//
// Errors have the codes of common/io/file.h and worker/data/storage/storage.h, and name the place.
//
// Threads: one at a time.
class CopyPlace {
 public:
  // files: of this machine; outlives the place. Looks at nothing yet.
  static std::unique_ptr<CopyPlace> At(FileSystem& files, const std::string& path);
  virtual ~CopyPlace() = default;

  // The file's place, for messages; "": the state folder.
  virtual std::string PathOf(const std::string& name) const = 0;
  // The files of "data" or "manifest", with their sizes; those that are being written are left out.
  // Empty: there is no such folder.
  virtual absl::StatusOr<std::map<std::string, uint64_t>> List(const std::string& folder) = 0;
  // Copies the file `local` of this machine. It appears whole, on disk, or not at all; one that is
  // there is replaced. writer: nobody else writes this name as this writer at the same time.
  virtual absl::Status Put(const std::string& local, const std::string& name,
                           const std::string& writer) = 0;
  // Copies a file to `local`, which must not exist; it is on disk afterwards.
  virtual absl::Status Get(const std::string& name, const std::string& local) = 0;
  // OK if there is none.
  virtual absl::Status Remove(const std::string& name) = 0;
};

}  // namespace cistern::app
