// Writes Norm files (worker/data/format/norm_format.h).
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/output_file.h"
#include "worker/data/format/sample_reader.h"

namespace cistern {

struct NormWriterOptions {
  NormCheck check = NormCheck::kNone;
  bool wide_keys = false;  // I64: 8-byte keys; else 4
  SampleShape shape;
};

// Records as they lie in a file, made of samples.
//
// Threads: any.
class NormEncoder {
 public:
  explicit NormEncoder(const NormWriterOptions& options);

  // Appends the record of one sample to `bytes`. Refuses what no reader would take: kOutOfRange for
  // a key that does not fit the width or is the reserved one, or for more keys than shape.max_keys;
  // kDataLoss for a label or dense feature that is not finite. `bytes` ends in part of it then.
  absl::Status Append(const SampleBlock& block, size_t sample, std::string* bytes) const;
  // Appends `header` as it lies in the file.
  void AppendHeader(const NormHeader& header, std::string* bytes) const;

 private:
  absl::Status AppendPayload(const SampleBlock& block, size_t sample, std::string* bytes) const;
  absl::Status AppendColumn(const SampleBlock& block, size_t sample, size_t input,
                            std::string* bytes) const;
  // The length and check sum around what `bytes` holds from `begin` on, behind room for the length.
  void Wrap(size_t begin, std::string* bytes) const;
  size_t BeginRecord(std::string* bytes) const;

  NormWriterOptions options_;
};

// The file appears under its name at Close, with the number of records in its header.
//
// Threads: one at a time.
class NormWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NormWriter>> Create(FileSystem& files,
                                                            const std::string& path,
                                                            const NormWriterOptions& options);

  // Appends samples [first, first + count) of `block`. Errors are those of NormEncoder, with file
  // and record.
  absl::Status Append(const SampleBlock& block, size_t first, size_t count);
  // Appends `records` records that a NormEncoder of the same options made.
  absl::Status AppendRecords(absl::string_view bytes, uint64_t records);
  absl::Status Append(const SampleBlock& block) { return Append(block, 0, block.size); }
  absl::Status Close();

  uint64_t records() const { return static_cast<uint64_t>(header_.number_of_records); }
  uint64_t bytes() const { return file_->size(); }  // so far

 private:
  NormWriter(std::unique_ptr<OutputFile> file, const NormWriterOptions& options);

  std::unique_ptr<OutputFile> file_;
  const NormEncoder encoder_;
  NormHeader header_;
  std::string record_;  // the current one
};

}  // namespace cistern
