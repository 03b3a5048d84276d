// Writes the rows of a table for serving (common/serving/rows_file.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/stream_hash.h"
#include "common/base/types.h"
#include "common/serving/rows_layout.h"

namespace cistern {

// Receives the bytes of a file in order.
using ByteSink = std::function<absl::Status(absl::string_view)>;

// Writes such a file: Begin with all keys, then each row in their order, then End.
//
// Threads: one at a time.
class RowsEncoder {
 public:
  // kNotHashed: for rows that stay in this process; the hashes and the digest are 0.
  enum class Hashes { kHashed, kNotHashed };
  RowsEncoder(const RowsShape& shape, ByteSink sink, Hashes hashes = Hashes::kHashed);
  ~RowsEncoder();

  // mixed: MixKey of every key, distinct and ascending; it outlives End.
  absl::Status Begin(absl::Span<const uint64_t> mixed);
  // The next row: with these weights, [dim], or as they are stored (WeightBytes); or removed.
  absl::Status Add(const float* weights);
  absl::Status AddStored(const char* weights);
  absl::Status AddRemoved();
  absl::Status End();

  // After End: the sum over the rows that are not removed of their ServedRowDigest, modulo 2^64;
  // and XXH3 of the whole file.
  uint64_t digest() const { return digest_; }
  uint64_t file_xxh3() const { return file_xxh3_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // A group, without its number of tags if it is large.
  RowsGroup GroupOf(uint64_t first, uint64_t end);
  absl::Status PutKey();
  absl::Status Put(absl::string_view bytes);
  absl::Status Flush();

  const RowsShape shape_;
  const size_t weight_bytes_;
  const ByteSink sink_;
  const std::unique_ptr<StreamHash> hash_;  // null: not hashed
  ServedRowDigest row_digest_;
  RowsLayout layout_;
  absl::Span<const uint64_t> mixed_;
  uint64_t next_ = 0, removed_num_ = 0;
  uint64_t digest_ = 0, file_xxh3_ = 0, bytes_ = 0;
  std::vector<uint64_t> removed_;
  std::string large_tags_;  // of the rows of large groups, in the packed format
  std::string row_;         // in the plain format
  std::string buffer_;      // not yet given to the sink
};

}  // namespace cistern
