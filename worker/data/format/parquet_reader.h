// Parquet files, as HugeCTR's data loader takes them: one column a label, dense feature and slot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern {

struct ParquetOptions {
  std::string source;  // a file list, or one .parquet file, or several of either with commas
  SampleShape shape;
  std::vector<uint64_t> slot_sizes;  // slot_size_array; empty: keys stay as they are
};

// Opens Parquet files of any encoding and compression; which columns they are read from:
// parquet_columns.h. Labels and dense features are float, double, whole or boolean columns, slots
// whole ones; each value of a slot is one key, to which the slot's offset is added. Footers are
// read and checked now, columns by Read, a few thousand rows at a time. Skip passes over whole
// files and row groups unread.
//
// kInvalidArgument (file, column, cure): a column of another type, a nested column, and what
// FindParquetColumns refuses; kNotFound: no such file; kDataLoss: not a Parquet file, or a corrupt
// one; kUnimplemented: this program was built without Parquet.
//
// Read refuses (file, row group, row in it, column): a null, a label or dense feature that is
// not a finite number (kDataLoss), a key outside its slot's size (kOutOfRange).
absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options);

// The library that reads Parquet, "Arrow 26.0.1"; empty: this program was built without.
std::string ParquetLibrary();

}  // namespace cistern
