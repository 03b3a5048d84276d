// The first step of preparing Criteo's logs: a piece of a day's text becomes rows whose values are
// numbered within the piece, and the values in that order.
//
// Pieces know nothing of each other, so any number of threads may read them in any order.
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
#include "worker/data/format/mapped_file.h"
#include "worker/data/prepare/criteo_line.h"

namespace cistern {

// What a dense number becomes.
enum class CriteoDense {
  kLog3,    // ln(x + 3); below -2 counts as -2
  kLog1,    // ln(x + 1); below 0 counts as 0
  kMinMax,  // (x - min) / (max - min) over the training days; outside counts as the bound
};

// Pairs of sparse columns (0 to 25) whose values together make a further column.
using CriteoCrosses = std::vector<std::pair<uint32_t, uint32_t>>;

// The lines that begin in bytes [begin, end) of a day.
struct CriteoBlock {
  size_t day = 0;
  uint64_t begin = 0, end = 0;
};

// A row: the bits of the label and of 13 dense floats, then the id of each column.
inline size_t CriteoRowWords(size_t columns) {
  return 1 + kCriteoDense + columns;
}

// Counts of a block, and its distinct values by column, in the order of their first occurrence.
// Columns: C1 to C26, then crosses, whose values are (first << 32 | second).
struct BlockValues {
  struct Counts {
    uint64_t rows = 0, positives = 0, clipped = 0;
    std::array<float, kCriteoDense> min, max;  // of the dense numbers as they are read
  };
  Counts counts;
  std::vector<std::vector<uint64_t>> values;  // [columns][distinct]
  std::vector<std::vector<uint32_t>> times;   // [columns][distinct]: rows that have the value
};

// Reads `block` of `day` (its text) and writes two files: its rows, each an array of
// CriteoRowWords 32-bit words, then, when these are on disk, its values. In rows ids count from 0
// by first occurrence in the block; dense numbers are transformed but with kMinMax. kDataLoss:
// file, line, column.
absl::Status ReadCriteoBlock(FileSystem& files, const MappedFile& day, const CriteoBlock& block,
                             CriteoDense transform, const CriteoCrosses& crosses,
                             const std::string& rows_path, const std::string& values_path);

// The values of a block, as a file.
//
// Threads: any.
class BlockValuesFile {
 public:
  // kDataLoss: not what ReadCriteoBlock writes.
  static absl::StatusOr<std::unique_ptr<BlockValuesFile>> Open(const std::string& path);

  const BlockValues::Counts& counts() const { return counts_; }
  uint32_t distinct(size_t column) const { return distinct_[column]; }
  uint64_t value(size_t column, uint32_t i) const;
  uint32_t times(size_t column, uint32_t i) const;

 private:
  std::unique_ptr<MappedFile> file_;
  BlockValues::Counts counts_;
  std::vector<uint32_t> distinct_;
  std::vector<uint64_t> begin_;  // [columns]: byte of its first value
};

}  // namespace cistern
