// The third step of preparing Criteo's logs: rows of a block get the ids of their values and are
// dealt to the parts that they are shuffled in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/mapped_file.h"
#include "worker/data/prepare/criteo_block.h"

namespace cistern {

// What all blocks share. Threads: any.
struct CriteoDealing {
  std::vector<std::unique_ptr<MappedFile>> maps;  // by column (criteo_ids.h)
  // With kMinMax: the range of each dense number.
  std::vector<std::pair<float, float>> ranges;
  // Of a row of the training data, by its number there; below the block's parts.
  std::function<uint64_t(uint64_t row)> part_of;
};

// One block's. parts: those of the training data, or 1. first_ids: [columns]: place of its first
// value in each map. first_row: number of its first row.
struct DealtBlock {
  std::vector<uint64_t> first_ids;
  uint64_t first_row = 0, parts = 1;
};

// Reads the rows at rows_path and writes them to dealt_path, those of part 0 first, in their order
// within a part. The file: [parts + 2] 64-bit numbers, the rows before each part, their number, and
// how many dense numbers were outside their range; then the rows.
absl::Status DealBlock(FileSystem& files, const CriteoDealing& dealing, const DealtBlock& block,
                       const std::string& rows_path, const std::string& dealt_path);

// The rows of one part in a dealt file, [rows, words].
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

}  // namespace cistern
