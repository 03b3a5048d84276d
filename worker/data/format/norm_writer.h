// Writes Norm files (worker/data/format/norm_format.h).
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/new_file.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

struct NormWriterOptions {
  NormCheck check = NormCheck::kNone;
  bool wide_keys = false;  // I64: 8-byte keys; else 4
  SampleShape shape;
};

// Encodes samples as records of a file.
//
// Threads: any.
class NormEncoder {
 public:
  explicit NormEncoder(const NormWriterOptions& options);

  // Appends the record of one sample to `bytes`. Refuses samples that readers would refuse:
  // kOutOfRange for a key that does not fit the key width or is the reserved key, or for more keys
  // than shape.max_keys; kDataLoss for a label or dense feature that is not finite. After an error,
  // `bytes` ends in an incomplete record.
  absl::Status Append(const SampleBlock& block, size_t sample, std::string* bytes) const;
  // Appends the encoded header.
  void AppendHeader(const NormHeader& header, std::string* bytes) const;

 private:
  absl::Status AppendPayload(const SampleBlock& block, size_t sample, std::string* bytes) const;
  absl::Status AppendColumn(const SampleBlock& block, size_t sample, size_t input,
                            std::string* bytes) const;
  // The weights of the keys of an input (key_weights.h).
  absl::Status AppendWeights(const SampleBlock& block, size_t sample, size_t input,
                             std::string* bytes) const;
  // Adds length and checksum around the payload at `begin`; space for the length precedes it.
  void Wrap(size_t begin, std::string* bytes) const;
  size_t BeginRecord(std::string* bytes) const;

  NormWriterOptions options_;
};

// Close writes the number of records into the header and renames the file to its name.
//
// Threads: one at a time.
class NormWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NormWriter>> Create(FileSystem& files,
                                                            const std::string& path,
                                                            const NormWriterOptions& options);

  // Appends samples [first, first + count) of `block`. Errors: as NormEncoder, with file and
  // record.
  absl::Status Append(const SampleBlock& block, size_t first, size_t count);
  // Appends `records` records that a NormEncoder with the same options encoded.
  absl::Status AppendRecords(absl::string_view bytes, uint64_t records);
  absl::Status Append(const SampleBlock& block) { return Append(block, 0, block.size); }
  absl::Status Close();

  uint64_t records() const { return static_cast<uint64_t>(header_.number_of_records); }
  uint64_t bytes() const { return file_->bytes(); }  // so far

 private:
  NormWriter(std::unique_ptr<NewFile> file, const NormWriterOptions& options);

  std::unique_ptr<NewFile> file_;
  const NormEncoder encoder_;
  NormHeader header_;
  std::string record_;  // the current one
};

}  // namespace cistern::data
