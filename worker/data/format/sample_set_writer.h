// Writes a data set of any format.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"

namespace cistern {

// Files in a folder that exists, and file_list.txt with their names. The folder is to appear as a
// whole (output_folder.h): what is written before Close makes no data set.
//
// Threads: one at a time.
class SampleSetWriter {
 public:
  virtual ~SampleSetWriter() = default;
  // Appends samples of the shape. Raw and Parquet: one key a slot, numbered from 0 in each slot;
  // Norm: keys as they are to lie in the file. kOutOfRange, kDataLoss: what no reader would take.
  virtual absl::Status Append(const SampleBlock& block) = 0;
  // The same for several blocks, one after the other; Norm and Raw make their bytes on the pool's
  // threads, which changes none of them.
  virtual absl::Status AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool);
  virtual absl::Status Close() = 0;
  // What a model's Data layer names, inside the folder: file_list.txt, or the one file of Raw.
  virtual std::string source() const = 0;
};

// files: outlives the writer. options: format and shape, and what the format has beside them;
// source is not used. samples_per_file: Norm, Parquet. kUnimplemented: Parquet in a build without.
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateSampleSetWriter(
    FileSystem& files, const std::string& folder, const DataSetOptions& options,
    uint64_t samples_per_file);

// The same for one format.
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateRawSetWriter(FileSystem& files,
                                                                    const std::string& folder,
                                                                    const DataSetOptions& options);
absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateParquetSetWriter(
    FileSystem& files, const std::string& folder, const DataSetOptions& options,
    uint64_t samples_per_file);

}  // namespace cistern
