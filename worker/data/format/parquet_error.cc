#include "worker/data/format/parquet_error.h"

#include <parquet/exception.h>

#include <new>

#include "absl/strings/str_cat.h"
#include "worker/data/storage/remote_file.h"
#include "worker/data/storage/storage.h"

namespace cistern {

absl::Status ParquetReadError(const std::string& path, const ParquetMemory* memory,
                              const std::exception& error) {
  if (memory != nullptr && memory->refused() > 0) {
    return absl::DataLossError(
        absl::StrCat(path, " is corrupt: one of its pages requests ", memory->refused(),
                     " bytes of memory, but a file of this size needs at most ", memory->limit(),
                     " (64 MiB plus 1024 times the file size)"));
  }
  const auto* failed = dynamic_cast<const parquet::ParquetStatusException*>(&error);
  if (IsRemote(path) && failed != nullptr && failed->status().IsIOError()) {
    return RemoteError(path, failed->status());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": not enough memory to read it"));
  }
  return absl::DataLossError(
      absl::StrCat(path, " is corrupt, or not a Parquet file: ", error.what()));
}

}  // namespace cistern
