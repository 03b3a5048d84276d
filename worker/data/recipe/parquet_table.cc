#include "worker/data/recipe/parquet_table.h"

#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/io/file.h"
#include "worker/data/format/parquet_error.h"
#include "worker/data/recipe/arrow_rows.h"

namespace cistern::data {
namespace {

constexpr int64_t kRowsPerBatch = 4096;

class ParquetTable : public TextTable {
 public:
  ParquetTable(std::string path, const ListSeparators& separators)
      : path_(std::move(path)), cells_(separators) {}

  absl::Status Open() {
    return ReadParquet(path_, memory_, [&]() -> absl::Status {
      PARQUET_ASSIGN_OR_THROW(const auto source, arrow::io::ReadableFile::Open(path_));
      PARQUET_ASSIGN_OR_THROW(file_bytes_, source->GetSize());
      memory_ = std::make_unique<ParquetMemory>(file_bytes_);
      parquet::arrow::FileReaderBuilder builder;
      parquet::ReaderProperties properties(memory_.get());
      properties.enable_buffered_stream();
      properties.set_page_checksum_verification(true);  // of the pages that have one
      PARQUET_THROW_NOT_OK(builder.Open(source, properties));
      parquet::ArrowReaderProperties arrow_properties;
      arrow_properties.set_batch_size(kRowsPerBatch);
      arrow_properties.set_use_threads(false);
      arrow_properties.set_arrow_extensions_enabled(true);
      builder.memory_pool(memory_.get())->properties(arrow_properties);
      PARQUET_ASSIGN_OR_THROW(reader_, builder.Build());
      std::shared_ptr<arrow::Schema> schema;
      PARQUET_THROW_NOT_OK(reader_->GetSchema(&schema));
      cells_.SetSchema(*schema, /*wanted=*/nullptr, Intervals());
      if (cells_.read_columns().empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(path_, ": no column holds text, numbers, times, or lists of them"));
      }
      rows_ = reader_->parquet_reader()->metadata()->num_rows();
      std::vector<int> groups(
          static_cast<size_t>(reader_->parquet_reader()->metadata()->num_row_groups()));
      std::iota(groups.begin(), groups.end(), 0);
      PARQUET_ASSIGN_OR_THROW(batches_, reader_->GetRecordBatchReader(groups, LeavesToRead()));
      return absl::OkStatus();
    });
  }

  const std::vector<std::string>& columns() const override { return cells_.columns(); }
  std::vector<std::string> list_columns() const override { return cells_.list_columns(); }
  std::string WhyUnreadable(const std::string& column) const override {
    return cells_.WhyUnreadable(column);
  }
  uint64_t bytes_read() const override {
    const double share = rows_ > 0 ? static_cast<double>(row_) / static_cast<double>(rows_) : 1;
    return static_cast<uint64_t>(share * static_cast<double>(file_bytes_));
  }

  absl::StatusOr<bool> Next(TextRow* row) override {
    while (cells_.at_end()) {
      std::shared_ptr<arrow::RecordBatch> batch;
      CISTERN_RETURN_IF_ERROR(ReadParquet(path_, memory_, [&]() -> absl::Status {
        PARQUET_THROW_NOT_OK(batches_->ReadNext(&batch));
        return absl::OkStatus();
      }));
      if (batch == nullptr) return false;
      cells_.SetBatch(std::move(batch));
    }
    row->line = static_cast<uint64_t>(++row_);
    CISTERN_RETURN_IF_ERROR(AddContext(cells_.Next(row), absl::StrCat(path_, ": row ", row_)));
    return true;
  }

 private:
  std::set<std::string> Intervals() const {
    const parquet::SchemaDescriptor& schema = *reader_->parquet_reader()->metadata()->schema();
    std::set<std::string> names;
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      const parquet::ColumnDescriptor& column = *schema.Column(leaf);
      if (column.logical_type()->is_interval()) names.insert(column.path()->ToDotString());
    }
    return names;
  }
  // The leaves of the file's schema that belong to columns that are read.
  std::vector<int> LeavesToRead() const {
    const parquet::SchemaDescriptor& schema = *reader_->parquet_reader()->metadata()->schema();
    const std::vector<int>& read = cells_.read_columns();
    std::vector<int> leaves;
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      const int column = schema.group_node()->FieldIndex(*schema.GetColumnRoot(leaf));
      if (std::binary_search(read.begin(), read.end(), column)) leaves.push_back(leaf);
    }
    return leaves;
  }

  const std::string path_;
  std::unique_ptr<ParquetMemory> memory_;  // outlives its users below
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  ArrowRows cells_;
  int64_t file_bytes_ = 0, rows_ = 0, row_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenParquetTable(const std::string& path,
                                                            const ListSeparators& separators) {
  CISTERN_RETURN_IF_ERROR(OpenFile(path).status());  // on a FIFO, Arrow would block
  auto table = std::make_unique<ParquetTable>(path, separators);
  CISTERN_RETURN_IF_ERROR(table->Open());
  return table;
}

}  // namespace cistern::data
