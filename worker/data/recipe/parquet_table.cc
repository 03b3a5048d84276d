#include "worker/data/recipe/parquet_table.h"

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <parquet/arrow/reader.h>

#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "common/io/file.h"
#include "worker/data/format/parquet_error.h"

namespace cistern {
namespace {

constexpr int64_t kRowsPerBatch = 4096;

// The fewest digits that read back the same.
template <typename T>
void AppendNumber(T x, std::string* text) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return;  // pandas' missing value
  }
  char digits[64];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), x);
  text->append(digits, end.ptr);
}

template <typename ArrayType>
void AppendValue(const arrow::Array& array, int64_t i, std::string* text) {
  AppendNumber(static_cast<const ArrayType&>(array).Value(i), text);
}

template <typename ArrayType>
void AppendBytes(const arrow::Array& array, int64_t i, std::string* text) {
  const auto bytes = static_cast<const ArrayType&>(array).GetView(i);
  text->append(bytes.data(), bytes.size());
}

template <typename ArrayType>
void AppendDecimal(const arrow::Array& array, int64_t i, std::string* text) {
  std::string digits = static_cast<const ArrayType&>(array).FormatValue(i);
  if (absl::StrContains(digits, '.') && !absl::StrContains(digits, 'E')) {  // 1.50 is 1.5
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  text->append(digits);
}

void AppendDay(int64_t days, std::string* text) {
  text->append(absl::FormatCivilTime(absl::CivilDay(1970, 1, 1) + days));
}

void AppendTime(const arrow::Array& array, int64_t i, std::string* text) {
  const auto unit = static_cast<const arrow::TimestampType&>(*array.type()).unit();
  const int64_t count = static_cast<const arrow::TimestampArray&>(array).Value(i);
  const absl::Time time = unit == arrow::TimeUnit::SECOND  ? absl::FromUnixSeconds(count)
                          : unit == arrow::TimeUnit::MILLI ? absl::FromUnixMillis(count)
                          : unit == arrow::TimeUnit::MICRO ? absl::FromUnixMicros(count)
                                                           : absl::FromUnixNanos(count);
  text->append(absl::FormatTime("%Y-%m-%d %H:%M:%E*S", time, absl::UTCTimeZone()));
}

bool IsList(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

// Whether Append knows the type.
bool IsSimple(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
    case arrow::Type::BOOL:
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
    case arrow::Type::STRING:
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY:
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return true;
    case arrow::Type::DICTIONARY:
      return IsSimple(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default:
      return false;
  }
}

// Appends the text of a value; nothing for a null.
void Append(const arrow::Array& array, int64_t i, std::string* text) {
  if (array.IsNull(i)) return;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      text->push_back(static_cast<const arrow::BooleanArray&>(array).Value(i) ? '1' : '0');
      return;
    case arrow::Type::INT8:
      return AppendValue<arrow::Int8Array>(array, i, text);
    case arrow::Type::INT16:
      return AppendValue<arrow::Int16Array>(array, i, text);
    case arrow::Type::INT32:
      return AppendValue<arrow::Int32Array>(array, i, text);
    case arrow::Type::INT64:
      return AppendValue<arrow::Int64Array>(array, i, text);
    case arrow::Type::UINT8:
      return AppendValue<arrow::UInt8Array>(array, i, text);
    case arrow::Type::UINT16:
      return AppendValue<arrow::UInt16Array>(array, i, text);
    case arrow::Type::UINT32:
      return AppendValue<arrow::UInt32Array>(array, i, text);
    case arrow::Type::UINT64:
      return AppendValue<arrow::UInt64Array>(array, i, text);
    case arrow::Type::HALF_FLOAT:
      return AppendNumber(
          arrow::util::Float16::FromBits(static_cast<const arrow::HalfFloatArray&>(array).Value(i))
              .ToFloat(),
          text);
    case arrow::Type::FLOAT:
      return AppendValue<arrow::FloatArray>(array, i, text);
    case arrow::Type::DOUBLE:
      return AppendValue<arrow::DoubleArray>(array, i, text);
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return AppendBytes<arrow::BinaryArray>(array, i, text);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return AppendBytes<arrow::BinaryViewArray>(array, i, text);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return AppendBytes<arrow::LargeBinaryArray>(array, i, text);
    case arrow::Type::FIXED_SIZE_BINARY:
      return AppendBytes<arrow::FixedSizeBinaryArray>(array, i, text);
    case arrow::Type::DATE32:
      return AppendDay(static_cast<const arrow::Date32Array&>(array).Value(i), text);
    case arrow::Type::DATE64:
      return AppendDay(static_cast<const arrow::Date64Array&>(array).Value(i) / 86400000, text);
    case arrow::Type::TIMESTAMP:
      return AppendTime(array, i, text);
    case arrow::Type::DECIMAL128:
      return AppendDecimal<arrow::Decimal128Array>(array, i, text);
    case arrow::Type::DECIMAL256:
      return AppendDecimal<arrow::Decimal256Array>(array, i, text);
    case arrow::Type::DICTIONARY: {
      const auto& encoded = static_cast<const arrow::DictionaryArray&>(array);
      return Append(*encoded.dictionary(), encoded.GetValueIndex(i), text);
    }
    default:
      return;
  }
}

// The bounds of a list in its values.
template <typename ListArray>
std::pair<int64_t, int64_t> BoundsIn(const arrow::Array& array, int64_t i) {
  const auto& list = static_cast<const ListArray&>(array);
  return {list.value_offset(i), list.value_offset(i) + list.value_length(i)};
}

const arrow::Array& ValuesOf(const arrow::Array& array, int64_t i,
                             std::pair<int64_t, int64_t>* bounds) {
  if (array.type_id() == arrow::Type::LIST) {
    *bounds = BoundsIn<arrow::ListArray>(array, i);
    return *static_cast<const arrow::ListArray&>(array).values();
  }
  if (array.type_id() == arrow::Type::LARGE_LIST) {
    *bounds = BoundsIn<arrow::LargeListArray>(array, i);
    return *static_cast<const arrow::LargeListArray&>(array).values();
  }
  *bounds = BoundsIn<arrow::FixedSizeListArray>(array, i);
  return *static_cast<const arrow::FixedSizeListArray&>(array).values();
}

// False: a value contains the separator.
bool AppendList(const arrow::Array& array, int64_t i, char separator, std::string* text) {
  if (array.IsNull(i)) return true;
  std::pair<int64_t, int64_t> bounds;
  const arrow::Array& values = ValuesOf(array, i, &bounds);
  const size_t begin = text->size();
  for (int64_t k = bounds.first; k < bounds.second; ++k) {
    if (values.IsNull(k)) continue;
    if (text->size() > begin) text->push_back(separator);
    const size_t value = text->size();
    Append(values, k, text);
    if (absl::StrContains(absl::string_view(*text).substr(value), separator)) return false;
  }
  return true;
}

class ParquetTable : public TextTable {
 public:
  ParquetTable(std::string path, ListSeparators separators)
      : path_(std::move(path)), separators_(std::move(separators)) {}

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
      builder.memory_pool(memory_.get())->properties(arrow_properties);
      PARQUET_ASSIGN_OR_THROW(reader_, builder.Build());
      std::shared_ptr<arrow::Schema> schema;
      PARQUET_THROW_NOT_OK(reader_->GetSchema(&schema));
      CISTERN_RETURN_IF_ERROR(TakeColumns(*schema));
      rows_ = reader_->parquet_reader()->metadata()->num_rows();
      std::vector<int> groups(
          static_cast<size_t>(reader_->parquet_reader()->metadata()->num_row_groups()));
      std::iota(groups.begin(), groups.end(), 0);
      PARQUET_ASSIGN_OR_THROW(batches_, reader_->GetRecordBatchReader(groups, LeavesToRead()));
      return absl::OkStatus();
    });
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::vector<std::string> list_columns() const override { return lists_; }
  std::string WhyUnreadable(const std::string& column) const override {
    const auto found = unreadable_.find(column);
    return found == unreadable_.end() ? "" : found->second;
  }
  uint64_t bytes_read() const override {
    const double share = rows_ > 0 ? static_cast<double>(row_) / static_cast<double>(rows_) : 1;
    return static_cast<uint64_t>(share * static_cast<double>(file_bytes_));
  }

  absl::StatusOr<bool> Next(TextRow* row) override {
    while (batch_ == nullptr || at_ == batch_->num_rows()) {
      CISTERN_RETURN_IF_ERROR(ReadParquet(path_, memory_, [&]() -> absl::Status {
        PARQUET_THROW_NOT_OK(batches_->ReadNext(&batch_));
        return absl::OkStatus();
      }));
      at_ = 0;
      if (batch_ == nullptr) return false;
    }
    row->line = static_cast<uint64_t>(++row_);
    text_.clear();
    ends_.clear();
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (places_[c] == kUnread) {
        ends_.push_back(text_.size());
        continue;
      }
      const arrow::Array& column = *batch_->column(places_[c]);
      if (!IsList(*column.type())) {
        Append(column, at_, &text_);
      } else if (!AppendList(column, at_, SeparatorOf(columns_[c]), &text_)) {
        return absl::DataLossError(
            absl::StrCat(path_, ": row ", row_, ": a value of the list '", columns_[c],
                         "' contains '", std::string(1, SeparatorOf(columns_[c])),
                         "', which separates the values of a list: replace it in the data"));
      }
      ends_.push_back(text_.size());
    }
    ++at_;
    row->fields.clear();
    size_t begin = 0;
    for (const size_t end : ends_) {
      row->fields.push_back(absl::string_view(text_).substr(begin, end - begin));
      begin = end;
    }
    return true;
  }

 private:
  static constexpr int kUnread = -1;

  char SeparatorOf(const std::string& column) const {
    const auto found = separators_.find(column);
    return found == separators_.end() ? kListSeparator : found->second;
  }
  absl::Status TakeColumns(const arrow::Schema& schema) {
    int read = 0;
    for (const auto& field : schema.fields()) {
      const arrow::DataType& type = *field->type();
      const bool list = IsList(type);
      const arrow::DataType& value =
          list ? *static_cast<const arrow::BaseListType&>(type).value_type() : type;
      const bool readable = IsSimple(value);
      if (!readable) unreadable_[field->name()] = absl::StrCat("is ", type.ToString());
      columns_.push_back(field->name());
      places_.push_back(readable ? read++ : kUnread);
      if (list && readable) lists_.push_back(field->name());
    }
    if (read > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": no column holds text, numbers, times, or lists of them"));
  }

  // The leaves of the file's schema that belong to columns that are read.
  std::vector<int> LeavesToRead() const {
    const parquet::SchemaDescriptor& schema = *reader_->parquet_reader()->metadata()->schema();
    std::vector<int> leaves;
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      const int column = schema.group_node()->FieldIndex(*schema.GetColumnRoot(leaf));
      if (column >= 0 && places_[static_cast<size_t>(column)] != kUnread) leaves.push_back(leaf);
    }
    return leaves;
  }

  const std::string path_;
  const ListSeparators separators_;
  std::unique_ptr<ParquetMemory> memory_;  // outlives its users below
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::vector<std::string> columns_, lists_;
  std::map<std::string, std::string> unreadable_;  // why, by column
  std::vector<int> places_;                        // in batches, by column
  int64_t file_bytes_ = 0, rows_ = 0, row_ = 0;
  int64_t at_ = 0;            // in batch_
  std::string text_;          // the fields of a row, one after the other
  std::vector<size_t> ends_;  // of the fields
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenParquetTable(const std::string& path,
                                                            const ListSeparators& separators) {
  CISTERN_RETURN_IF_ERROR(OpenFile(path).status());  // on a FIFO, Arrow would block
  auto table = std::make_unique<ParquetTable>(path, separators);
  CISTERN_RETURN_IF_ERROR(table->Open());
  return table;
}

}  // namespace cistern
