// Writes a data set: Norm files of equal numbers of samples, and their file list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "worker/data/format/norm_writer.h"

namespace cistern {

// Makes <folder>/part-00000.norm, part-00001.norm, ... and, at Close, <folder>/file_list.txt. There
// is at least one file, so that an empty set can be read too.
//
// Threads: one at a time.
class NormSetWriter {
 public:
  // files: outlives this. folder: exists.
  NormSetWriter(FileSystem& files, std::string folder, const NormWriterOptions& options,
                uint64_t samples_per_file);

  // Errors are those of NormWriter::Append.
  absl::Status Append(const SampleBlock& block);
  // The same for several blocks, one after the other, with records made on the pool's threads.
  absl::Status AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool);
  absl::Status Close();

  uint64_t files() const { return names_.size(); }
  uint64_t bytes() const { return bytes_; }  // of closed files

 private:
  // Records of a block, back to back, and where each ends.
  struct Records {
    absl::Status status;
    std::string bytes;
    std::vector<size_t> ends;
  };
  Records Encode(const SampleBlock& block) const;
  absl::Status AppendRecords(const Records& records);
  // How many of `wanted` records the open file takes; opens the next one first where it is full.
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

}  // namespace cistern
