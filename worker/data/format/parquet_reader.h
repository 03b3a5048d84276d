// Reads Parquet files in HugeCTR's layout: one column for each label, dense feature and slot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

struct ParquetOptions {
  std::string source;  // a file list, a .parquet file, or several of either, comma-separated
  SampleShape shape;
  std::vector<uint64_t> slot_sizes;  // slot_size_array; empty: keys are not offset
  ReadCounts* counts = nullptr;      // as in NormOptions
};

// Opens Parquet files of any encoding and compression. parquet_columns.h finds their columns.
// Labels and dense features are float, double, integer or boolean columns, slots are integer
// columns. Each value of a slot is one key, to which the reader adds the slot's offset. Footers are
// read and checked at once; Read decodes the columns, a few thousand rows at a time. Skip skips
// whole files and row groups without reading them.
//
// kInvalidArgument (names file, column and fix): a column of another type, a nested column, or an
// error of FindParquetColumns; kNotFound: no such file; kDataLoss: not a Parquet file, or a corrupt
// one; kUnimplemented: this program was built without Parquet.
//
// Errors of Read (name file, row group, row in it, column): kDataLoss: a null, or a label or dense
// feature that is not a finite number; kOutOfRange: a key outside its slot's size.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options);
// The same for these data files, in this order; ignores options.source.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options,
                                                          const std::vector<std::string>& paths);

// The library that reads Parquet, such as "Arrow 26.0.1"; empty if built without Parquet.
std::string ParquetLibrary();

}  // namespace cistern::data
