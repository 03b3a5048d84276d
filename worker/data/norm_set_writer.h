// Writes a data set: Norm files of equal numbers of samples, and their file list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/data/norm_writer.h"

namespace cistern {

// Makes <folder>/part-00000.norm, part-00001.norm, ... and, at Close, <folder>/file_list.txt. There
// is at least one file, so that an empty set can be read too.
//
// Threads: one at a time.
class NormSetWriter {
 public:
  // folder: exists.
  NormSetWriter(std::string folder, const NormWriterOptions& options, uint64_t samples_per_file);

  // Errors are those of NormWriter::Append.
  absl::Status Append(const SampleBlock& block);
  absl::Status Close();

  uint64_t files() const { return names_.size(); }
  uint64_t bytes() const { return bytes_; }  // of closed files

 private:
  absl::Status OpenFile();
  absl::Status CloseFile();

  const std::string folder_;
  const NormWriterOptions options_;
  const uint64_t samples_per_file_;
  std::unique_ptr<NormWriter> writer_;
  std::vector<std::string> names_;
  uint64_t bytes_ = 0;
};

}  // namespace cistern
