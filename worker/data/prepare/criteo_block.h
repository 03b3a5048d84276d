// The first step of preparing Criteo's logs: turns a block of a day's text into rows with values
// numbered within the block, and a list of these values in that order.
//
// Blocks are independent of each other, so any number of threads can read them in any order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/mapped_file.h"
#include "worker/data/prepare/criteo_line.h"

namespace cistern::data {

// The transform of dense numbers.
enum class CriteoDense {
  kLog3,    // ln(x + 3); x below -2 is clipped to -2
  kLog1,    // ln(x + 1); x below 0 is clipped to 0
  kMinMax,  // (x - min) / (max - min) of the training days; x is clipped to [min, max]
};

// Pairs of sparse columns (0 to 25); the pairs of their values form a further column.
using CriteoCrosses = std::vector<std::pair<uint32_t, uint32_t>>;

// The lines that start in bytes [begin, end) of a day.
struct CriteoBlock {
  size_t day = 0;
  uint64_t begin = 0, end = 0;
};

// 32-bit words of a row: the bits of the label and of 13 dense floats, then the id of each column.
inline size_t CriteoRowWords(size_t columns) {
  return 1 + kCriteoDense + columns;
}

// The counts of a block, and its distinct values by column, in the order of first occurrence. The
// columns are C1 to C26, then the crosses, with values (first << 32 | second).
struct BlockValues {
  struct Counts {
    uint64_t rows = 0, positives = 0, clipped = 0;
    std::array<float, kCriteoDense> min, max;  // of the dense numbers, before the transform
  };
  Counts counts;
  std::vector<std::vector<uint64_t>> values;  // [columns][distinct]
  std::vector<std::vector<uint32_t>> times;   // [columns][distinct]: rows with the value
};

// Reads `block` of the text `day` and writes two files: its rows, each an array of CriteoRowWords
// 32-bit words, and, once these are on disk, its values. Ids in the rows are numbered from 0 in the
// order of first occurrence in the block. Dense numbers are transformed, except with kMinMax.
// kDataLoss names file, line and column.
absl::Status ReadCriteoBlock(FileSystem& files, const MappedFile& day, const CriteoBlock& block,
                             CriteoDense transform, const CriteoCrosses& crosses,
                             const std::string& rows_path, const std::string& values_path);

// The values file of a block.
//
// Threads: any.
class BlockValuesFile {
 public:
  // kDataLoss: not a file that ReadCriteoBlock wrote.
  static absl::StatusOr<std::unique_ptr<BlockValuesFile>> Open(const std::string& path);

  size_t column_num() const { return distinct_.size(); }
  const BlockValues::Counts& counts() const { return counts_; }
  uint32_t distinct(size_t column) const { return distinct_[column]; }
  uint64_t value(size_t column, uint32_t i) const;
  uint32_t times(size_t column, uint32_t i) const;

 private:
  std::unique_ptr<MappedFile> file_;
  BlockValues::Counts counts_;
  std::vector<uint32_t> distinct_;
  std::vector<uint64_t> begin_;  // [columns]: byte offset of the first value
};

}  // namespace cistern::data
