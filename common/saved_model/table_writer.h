// Writes the rows of a table to a file of a saved model, with the digest of what it holds. Servers
// save with these, each its own shards, and so does a worker, which saves all of them.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "common/saved_model/model_folder.h"
#include "common/saved_model/model_rows.h"
#include "common/value/row_digest.h"

namespace cistern {

// One shard of a sparse table.
//
// Threads: one at a time.
class ShardWriter {
 public:
  // Creates the file that `part` has for this shard. layout: of the table; outlives this.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      FileSystem& files, const std::string& folder, const ModelPart& part, const std::string& table,
      uint32_t shard, const ValueLayout& layout);

  // Adds a row to the buffer. Touches no disk, so it may be called under a lock.
  // value: of `layout`, which is that of stored values.
  void Add(Key key, const float* value, bool has_embedx);
  // value: of layout.unpacked().
  void AddUnpacked(Key key, const float* value, bool has_embedx);
  size_t buffered_bytes() const { return bytes_.size(); }
  // Writes the buffer to the file.
  absl::Status Flush();
  // Flushes, and describes the file.
  absl::StatusOr<ModelFile> Close();

 private:
  ShardWriter(std::unique_ptr<ModelFileWriter> file, const v1::SaveFormat& format,
              const ValueLayout& layout)
      : file_(std::move(file)), format_(format), layout_(layout), digest_(layout) {}

  const std::unique_ptr<ModelFileWriter> file_;
  const v1::SaveFormat format_;
  const ValueLayout& layout_;
  RowDigest digest_;
  std::vector<float> packed_;
  std::string bytes_;
  uint64_t rows_ = 0;  // in bytes_
  uint64_t sum_ = 0;   // of all rows' digests
};

// One server's rows of a dense table, in order.
//
// Threads: one at a time.
class DenseWriter {
 public:
  // Creates the file that `part` has for this table. first_row: index in the whole table.
  static absl::StatusOr<std::unique_ptr<DenseWriter>> Create(FileSystem& files,
                                                             const std::string& folder,
                                                             const ModelPart& part,
                                                             const v1::DenseTableSpec& table,
                                                             uint64_t first_row);

  // Writes whole rows, [rows, columns].
  absl::Status Append(absl::Span<const float> values);
  absl::StatusOr<ModelFile> Close();

 private:
  DenseWriter(std::unique_ptr<ModelFileWriter> file, const v1::SaveFormat& format,
              const v1::DenseTableSpec& table, uint64_t first_row)
      : file_(std::move(file)), format_(format), table_(table), row_(first_row) {}

  const std::unique_ptr<ModelFileWriter> file_;
  const v1::SaveFormat format_;
  const v1::DenseTableSpec table_;
  uint64_t row_;      // the next one
  uint64_t sum_ = 0;  // of all cells' digests
};

}  // namespace cistern
