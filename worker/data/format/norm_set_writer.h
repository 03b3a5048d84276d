// Writes a data set: Norm files of equal numbers of samples, and their file list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "worker/data/format/norm_writer.h"

namespace cistern::data {

// Writes <folder>/part-00000.norm, part-00001.norm, ... and, at Close, <folder>/file_list.txt.
// Writes at least one file, so that an empty set is readable too.
//
// Threads: one at a time.
class NormSetWriter {
 public:
  // files: outlives this. folder: exists.
  NormSetWriter(FileSystem& files, std::string folder, const NormWriterOptions& options,
                uint64_t samples_per_file);

  // Errors: as NormWriter::Append.
  absl::Status Append(const SampleBlock& block);
  // The same for several blocks, in order; encodes the records on the pool's threads.
  absl::Status AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool);
  absl::Status Close();

  uint64_t files() const { return names_.size(); }
  uint64_t bytes() const { return bytes_; }  // of closed files

 private:
  // The encoded records of a block, back to back, and the end offset of each.
  struct Records {
    absl::Status status;
    std::string bytes;
    std::vector<size_t> ends;
  };
  Records Encode(const SampleBlock& block) const;
  absl::Status AppendRecords(const Records& records);
  // Returns how many of `wanted` records the open file has room for; opens the next file if it is
  // full.
  absl::StatusOr<size_t> RoomFor(size_t wanted);
  absl::Status OpenFile();
  absl::Status CloseFile();

  FileSystem& files_;
  const std::string folder_;
  const NormWriterOptions options_;
  const NormEncoder encoder_;
  const uint64_t samples_per_file_;
  std::unique_ptr<NormWriter> writer_;
  std::vector<std::string> names_;
  uint64_t bytes_ = 0;
};

}  // namespace cistern::data
