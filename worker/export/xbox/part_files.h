// Rows in SequenceFiles part-000, part-001, ...: a key of 8 bytes, little-endian, and the value of
// xbox_value.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "worker/export/committed_model.h"
#include "worker/export/export_manifest.h"
#include "worker/export/xbox/sequence_file.h"

namespace cistern {

// Writes rows in groups, such as the rows of a shard. A scan returns the rows of a group in any
// order; they are sorted, so that the files are a function of the rows.
//
// Threads: one at a time. Memory: the rows of one group, and 1 MiB per file.
class PartFiles {
 public:
  static constexpr uint32_t kMaxFiles = 500;

  // Creates `count` files in `folder`. origin: text that says what the rows are; it determines the
  // markers of the files.
  static absl::StatusOr<std::unique_ptr<PartFiles>> Create(FileSystem& files,
                                                           const std::string& folder,
                                                           uint32_t count,
                                                           const SequenceFormat& format,
                                                           const std::string& origin);

  // Adds a row to the group: to file `part`, at a place given by `order`. A key is added once.
  void Add(uint32_t part, uint64_t order, Key key, absl::string_view value);
  // Writes the group.
  absl::Status EndGroup();
  // Completes all files. No group may be open.
  absl::Status Close();

  // After Close.
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const;
  // The sum over all rows of XXH3-64 of {key u64 little-endian, value}: does not depend on the
  // number of files, their form or their order.
  uint64_t digest() const { return digest_; }
  // [{"name": "part-000", "rows": 5, "bytes": 345, "xxh3": "16 hex digits"}, ...]; prefix: of the
  // names.
  ExportManifest Describe(const std::string& prefix) const;

 private:
  struct Row {
    uint64_t order;
    Key key;
    size_t begin;  // of key and value in group_bytes_
    uint32_t bytes, part;
  };

  std::vector<std::unique_ptr<SequenceFileWriter>> writers_;
  std::vector<Row> group_;
  std::string group_bytes_;
  uint64_t rows_ = 0, digest_ = 0;
};

// "part-007".
std::string PartName(uint32_t part);

}  // namespace cistern
