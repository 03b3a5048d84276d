// Writes a data set of any format.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

// Writes the files of a data set and their file_list.txt to an existing folder. Before Close the
// folder is not a valid data set, so use one that appears as a whole (output_folder.h).
//
// Threads: one at a time.
class SampleSetWriter {
 public:
  virtual ~SampleSetWriter() = default;
  // Appends samples of the shape. Raw and Parquet: one key per slot, numbered from 0 in each slot;
  // Norm: keys as they are stored in the file. kOutOfRange, kDataLoss: samples that readers would
  // refuse.
  virtual absl::Status Append(const SampleBlock& block) = 0;
  // The same for several blocks, in order. Norm and Raw encode them on the pool's threads; the
  // bytes do not depend on the number of threads.
  virtual absl::Status AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool);
  virtual absl::Status Close() = 0;
  // The `source` for a model's Data layer, relative to the folder: file_list.txt or Raw's file.
  virtual std::string source() const = 0;
};

// Creates a writer for options.format. files: outlives the writer. options: format, shape and the
// fields of the format; source is ignored. samples_per_file: Norm and Parquet only. kUnimplemented:
// Parquet in a build without it.
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateSampleSetWriter(
    FileSystem& files, const std::string& folder, const DataSetOptions& options,
    uint64_t samples_per_file);

// Writers of single formats.
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateNormSetWriter(FileSystem& files,
                                                                     const std::string& folder,
                                                                     const DataSetOptions& options,
                                                                     uint64_t samples_per_file);
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateRawSetWriter(FileSystem& files,
                                                                    const std::string& folder,
                                                                    const DataSetOptions& options);
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateParquetSetWriter(
    FileSystem& files, const std::string& folder, const DataSetOptions& options,
    uint64_t samples_per_file);

}  // namespace cistern::data
