// Writes Hadoop's SequenceFile, version 6, whose keys and values are BytesWritable, in two forms:
//
// clang-format off
//   header    "SEQ" 06, key class, value class (each a length byte and its name), u8 compressed,
//             u8 block_compressed, codec class if compressed, u32 0, marker[16]
//   kHadoop   u32 record bytes, u32 key bytes, key, value: as Hadoop's own reader expects them, so
//             a key and a value each begin with their u32 length, which the outer numbers include
//   kCube     the same without these inner lengths: as Paddle Serving's cube-builder reads them
//   kRecord   (kHadoop only) each value, with its length, is a zlib stream
//   kBlock    (kHadoop only) blocks of records: FF FF FF FF, marker, vint records, then four zlib
//             streams with their vint bytes: lengths of keys, keys, lengths of values, values
// clang-format on
//
// Integers are big-endian; vint is Hadoop's. Between records stands FF FF FF FF and the marker once
// 2,000 bytes of keys and values (kCube), or 102,400 bytes of the file (kHadoop), have followed the
// last one. A file never ends with a marker: cube-builder takes that for a truncated file.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/new_file.h"

namespace cistern {

enum class SequenceForm { kCube, kHadoop };
enum class SequenceCompression { kNone, kRecord, kBlock };

struct SequenceFormat {
  SequenceForm form = SequenceForm::kCube;
  SequenceCompression compression = SequenceCompression::kNone;
};

// kInvalidArgument if the form does not allow the compression.
absl::Status CheckFormat(const SequenceFormat& format);

// Equal rows and an equal marker give equal bytes, with the same version of zlib.
//
// Threads: one at a time.
class SequenceFileWriter {
 public:
  static constexpr size_t kMarkerBytes = 16;

  // format: allowed by CheckFormat. marker: kMarkerBytes that do not occur elsewhere in the file,
  // except by chance. Errors name the path.
  static absl::StatusOr<std::unique_ptr<SequenceFileWriter>> Create(FileSystem& files,
                                                                    const std::string& path,
                                                                    const SequenceFormat& format,
                                                                    const std::string& marker);
  ~SequenceFileWriter();

  // key, value: below 2^30 bytes each.
  absl::Status Append(absl::string_view key, absl::string_view value);
  // Completes the file; it gets its name now (NewFile).
  absl::Status Close();

  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return file_->bytes(); }  // after Close
  uint64_t xxh3() const { return file_->xxh3(); }    // after Close

 private:
  class Zlib;
  SequenceFileWriter(const SequenceFormat& format, std::string marker,
                     std::unique_ptr<NewFile> file);
  absl::Status AppendHeader();
  absl::Status AppendMarker();
  absl::Status AppendRecord(absl::string_view key, absl::string_view value);
  absl::Status AppendBlock();

  const SequenceFormat format_;
  const std::string marker_;
  const std::unique_ptr<NewFile> file_;
  const std::unique_ptr<Zlib> zlib_;  // null: not compressed
  std::string record_;                // buffers
  uint64_t rows_ = 0;
  uint64_t since_marker_ = 0;  // bytes, counted as above

  // The next block.
  struct Block {
    uint32_t rows = 0;
    std::string key_lengths, keys, value_lengths, values;
  };
  Block block_;
};

}  // namespace cistern
