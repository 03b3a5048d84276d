// Writes Norm files (worker/data/norm_format.h).
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "worker/data/norm_format.h"
#include "worker/data/output_file.h"
#include "worker/data/sample_reader.h"

namespace cistern {

struct NormWriterOptions {
  NormCheck check = NormCheck::kNone;
  bool wide_keys = false;  // I64: 8-byte keys; else 4
  SampleShape shape;
};

// The file appears under its name at Close, with the number of records in its header.
//
// Threads: one at a time.
class NormWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NormWriter>> Create(const std::string& path,
                                                            const NormWriterOptions& options);

  // Appends samples [first, first + count) of `block`. Refuses what no reader would take:
  // kOutOfRange for a key that does not fit the width or is the reserved one, or for more keys than
  // shape.max_keys; kDataLoss for a label or dense feature that is not finite.
  absl::Status Append(const SampleBlock& block, size_t first, size_t count);
  absl::Status Append(const SampleBlock& block) { return Append(block, 0, block.size); }
  absl::Status Close();

  uint64_t records() const { return static_cast<uint64_t>(header_.number_of_records); }
  uint64_t bytes() const { return file_->size(); }  // so far

 private:
  NormWriter(std::unique_ptr<OutputFile> file, const NormWriterOptions& options);
  absl::Status Encode(const SampleBlock& block, size_t sample);
  absl::Status EncodeColumn(const SampleBlock& block, size_t sample, size_t input);
  // The bytes of a record as they lie in the file.
  std::string Wrapped(const std::string& payload) const;

  std::unique_ptr<OutputFile> file_;
  NormWriterOptions options_;
  NormHeader header_;
  std::string payload_;  // of the current record
};

}  // namespace cistern
