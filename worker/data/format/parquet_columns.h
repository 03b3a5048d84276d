// Finds the columns of a Parquet file that hold labels, dense features and slots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern::data {

// Column indices in the file, in the order of the model.
struct ParquetColumns {
  std::vector<int> labels, dense;
  std::vector<int> slots;    // of all inputs, in order
  std::vector<int> weights;  // of the slots whose keys have weights, in order
};

// What the footer of a file tells about it.
struct ParquetOutline {
  std::string path;
  std::vector<std::string> names;  // of the columns
  int64_t rows = 0;
};

// If the file's folder holds a _metadata.json as NVTabular writes it, its lists labels, conts and
// cats give the column indices, in order, and a list of our own, weights, those of the weights of
// keys. Otherwise the file must hold exactly the labels, the dense features, the slots and the
// weights, in this order.
//
// shape: as ShapeInFiles (key_weights.h).
// kDataLoss (names file, column and fix): the _metadata.json is malformed, contradicts the file
// (another column name, index or number of rows), or uses a column twice. kInvalidArgument: the
// number of columns, in the _metadata.json or without it in the file, differs from the shape.
absl::StatusOr<ParquetColumns> FindParquetColumns(const ParquetOutline& file,
                                                  const SampleShape& shape);

// The same, with `text` as the contents of the _metadata.json at `path`.
absl::StatusOr<ParquetColumns> ParquetColumnsOfMetadata(const std::string& path,
                                                        const std::string& text,
                                                        const ParquetOutline& file,
                                                        const SampleShape& shape);

}  // namespace cistern::data
