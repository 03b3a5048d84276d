// The third step of preparing Criteo's logs: replaces the values in the rows of a block by their
// ids and deals the rows to the parts in which they are shuffled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/mapped_file.h"
#include "worker/data/prepare/criteo_block.h"

namespace cistern::data {

// The inputs that all blocks share.
//
// Threads: any.
struct CriteoDealing {
  std::vector<std::unique_ptr<MappedFile>> maps;  // by column (criteo_ids.h)
  // With kMinMax: the range of each dense number.
  std::vector<std::pair<float, float>> ranges;
  // The part of row number `row` of the training data; below the block's `parts`.
  std::function<uint64_t(uint64_t row)> part_of;
};

// The inputs of one block. first_ids: [columns], the index of its first value in each map.
// first_row: the number of its first row. parts: those of the training data, or 1.
struct DealtBlock {
  std::vector<uint64_t> first_ids;
  uint64_t first_row = 0, parts = 1;
};

// Reads the rows at rows_path and writes them to dealt_path, grouped by part; rows of a part keep
// their order. The file has [parts + 2] 64-bit numbers, then the rows. The numbers are the count of
// rows before each part, the count of all rows, and the count of dense numbers outside their range.
absl::Status DealBlock(FileSystem& files, const CriteoDealing& dealing, const DealtBlock& block,
                       const std::string& rows_path, const std::string& dealt_path);

// A dealt file, by part. The rows of a part are [rows, words].
//
// Threads: any.
class DealtFile {
 public:
  static absl::StatusOr<std::unique_ptr<DealtFile>> Open(const std::string& path, uint64_t parts,
                                                         size_t row_words);
  uint64_t rows(uint64_t part) const { return Number(part + 1) - Number(part); }
  uint64_t clipped() const { return Number(parts_ + 1); }
  absl::string_view bytes(uint64_t part) const {
    return file_->bytes().substr((parts_ + 2) * sizeof(uint64_t) + Number(part) * row_bytes_,
                                 rows(part) * row_bytes_);
  }

 private:
  uint64_t Number(uint64_t i) const;
  std::unique_ptr<MappedFile> file_;
  uint64_t parts_ = 0, row_bytes_ = 0;
};

}  // namespace cistern::data
