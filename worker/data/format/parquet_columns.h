// Which columns of a Parquet file hold labels, dense features and slots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern {

// Positions among the file's columns, in the order in which the model has them.
struct ParquetColumns {
  std::vector<int> labels, dense;
  std::vector<int> slots;  // of all inputs, one after the other
};

// What is known of a file before its columns are read.
struct ParquetOutline {
  std::string path;
  std::vector<std::string> names;  // of the columns
  int64_t rows = 0;
};

// Where a file _metadata.json stands beside the file, as NVTabular writes it, its labels, conts and
// cats say which columns these are, each by its index, in the order of the list. Where there is
// none, the columns are labels, dense features and slots in this order, and nothing else.
//
// kDataLoss names file, column and cure: a _metadata.json that is not what it should be, that
// contradicts the file (a column of another name or number, another number of rows), or that gives
// a column two uses. kInvalidArgument: another number of columns, in it or without one, than the
// shape has.
absl::StatusOr<ParquetColumns> FindParquetColumns(const ParquetOutline& file,
                                                  const SampleShape& shape);

// The same from `text`, the contents of the _metadata.json at `path`.
absl::StatusOr<ParquetColumns> ParquetColumnsOfMetadata(const std::string& path,
                                                        const std::string& text,
                                                        const ParquetOutline& file,
                                                        const SampleShape& shape);

}  // namespace cistern
