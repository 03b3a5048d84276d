// Reads one Parquet file column by column into samples. Include only where Arrow is available.
#pragma once

#include <parquet/api/reader.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/parquet_columns.h"
#include "worker/data/format/parquet_memory.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/format/slot_sizes.h"

namespace cistern::data {

// Threads: one at a time.
class ParquetFile {
 public:
  // sizes and counts: outlive this. counts: as in NormOptions. Errors: as OpenParquet. A file that
  // requests more memory than it could need (parquet_memory.h) is corrupt.
  static absl::StatusOr<std::unique_ptr<ParquetFile>> Open(const std::string& path,
                                                           const SampleShape& shape,
                                                           const SlotSizes& sizes,
                                                           ReadCounts* counts = nullptr);

  uint64_t rows() const { return rows_; }

  // Appends up to `max_samples` samples to `block`; 0 at the end of the file. After an error, every
  // later call returns the same error.
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block);
  // Skips up to `max_samples` samples and returns how many.
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples);

 private:
  // One column of the current row group.
  struct Column {
    int position = 0;  // column index in the file
    std::shared_ptr<parquet::ColumnReader> reader;
  };

  ParquetFile(std::string path, const SampleShape& shape, const SlotSizes& sizes,
              ReadCounts* counts)
      : path_(std::move(path)), shape_(shape), sizes_(sizes), counts_(counts) {}

  absl::Status OpenFooter();
  absl::Status CheckTypes() const;
  absl::Status CheckType(int position, bool is_slot) const;

  uint64_t group_rows() const;
  // Opens readers for the columns of the current row group.
  void OpenGroup();
  void EndGroup();
  // Passes over the next `count` rows of the row group.
  absl::Status SkipRows(size_t count);
  // Appends the next `count` rows of the row group. On an error or an exception, `block` holds
  // parts of them beyond its size.
  absl::Status AppendRows(size_t count, SampleBlock* block);
  // Drops what `block` holds beyond its size.
  void CutBack(SampleBlock* block) const;
  // Reads the next `count` values of a column into out[0], out[stride], out[2 * stride], ...
  absl::Status ReadFloats(Column* column, size_t count, const char* what, float* out,
                          size_t stride);
  absl::Status ReadKeys(Column* column, size_t count, size_t slot, Key* out, size_t stride);
  // The same for weights of keys, as bits (key_weights.h).
  absl::Status ReadWeights(Column* column, size_t count, Key* out, size_t stride);
  absl::Status SkipValues(Column* column, size_t count) const;
  // Reads `count` values of the column's type into scratch_.
  absl::Status ReadValues(Column* column, size_t count);
  template <typename Type>
  absl::Status ReadTyped(Column* column, size_t count);
  template <typename Visit>
  void VisitValues(const Column& column, size_t count, const Visit& visit) const;

  absl::Status Refuse(absl::StatusCode code, size_t row, const Column& column,
                      const std::string& why) const;

  const std::string path_;
  const SampleShape shape_;
  const SlotSizes& sizes_;
  ReadCounts* const counts_;                             // null: not counted
  std::shared_ptr<arrow::io::RandomAccessFile> remote_;  // null for a file of this machine
  std::unique_ptr<ParquetMemory> memory_;                // outlives its users below
  std::unique_ptr<parquet::ParquetFileReader> file_;
  ParquetColumns columns_;
  uint64_t rows_ = 0;
  int group_ = 0;           // the current row group
  uint64_t group_row_ = 0;  // its next row
  std::shared_ptr<parquet::RowGroupReader> group_reader_;
  std::vector<Column> label_, dense_;  // empty until the row group is open
  std::vector<Column> slot_;           // the same: slots, then weights of keys
  std::vector<float> weight_;          // a column of weights
  std::vector<uint64_t> scratch_;      // values of a column, packed in the column's type
  std::vector<int16_t> levels_;
  absl::Status error_;
};

}  // namespace cistern::data
