// Arrow reports errors of Parquet files as exceptions; none leaves the functions that read them.
// Include only where Arrow is available.
#pragma once

#include <exception>
#include <string>

#include "common/base/status.h"
#include "worker/data/format/parquet_memory.h"

namespace cistern::data {

// What `error` says about the file `path`. kDataLoss: it is corrupt, cut short or not a Parquet
// file. kUnimplemented: it uses a feature of the format that Arrow does not have.
// kResourceExhausted: memory. For a remote file, also the errors of RemoteError. memory: the
// file's; null before it is created.
absl::Status ParquetReadError(const std::string& path, const ParquetMemory* memory,
                              const std::exception& error);

// Runs work, which reads `path` and returns a status.
template <typename Work>
absl::Status ReadParquet(const std::string& path, const std::unique_ptr<ParquetMemory>& memory,
                         const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return ParquetReadError(path, memory.get(), error);
  }
}

}  // namespace cistern::data
