#include "worker/data/recipe/arrow_rows.h"

#include <arrow/array.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace cistern {
namespace {

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

int64_t PerSecond(arrow::TimeUnit::type unit) {
  return unit == arrow::TimeUnit::SECOND  ? 1
         : unit == arrow::TimeUnit::MILLI ? 1000
         : unit == arrow::TimeUnit::MICRO ? 1000000
                                          : 1000000000;
}

// Seconds; with a point, because an amount is no code.
void AppendDuration(const arrow::Array& array, int64_t i, std::string* text) {
  const auto unit = static_cast<const arrow::DurationType&>(*array.type()).unit();
  const auto count = static_cast<double>(static_cast<const arrow::DurationArray&>(array).Value(i));
  const size_t begin = text->size();
  AppendNumber(count / static_cast<double>(PerSecond(unit)), text);
  if (text->find_first_of(".e", begin) == std::string::npos) text->append(".0");
}

// 16:27:05.5; count: since midnight.
void AppendClock(const arrow::Array& array, int64_t count, std::string* text) {
  const int64_t per_second = PerSecond(static_cast<const arrow::TimeType&>(*array.type()).unit());
  const int64_t seconds = count / per_second;
  absl::StrAppendFormat(text, "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (count % per_second == 0) return;
  const int digits = per_second == 1000 ? 3 : per_second == 1000000 ? 6 : 9;
  absl::StrAppendFormat(text, ".%0*d", digits, count % per_second);
  text->erase(text->find_last_not_of('0') + 1);
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
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
    case arrow::Type::DURATION:
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
    case arrow::Type::TIME32:
      return AppendClock(array, static_cast<const arrow::Time32Array&>(array).Value(i), text);
    case arrow::Type::TIME64:
      return AppendClock(array, static_cast<const arrow::Time64Array&>(array).Value(i), text);
    case arrow::Type::DURATION:
      return AppendDuration(array, i, text);
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

}  // namespace

void ArrowRows::SetSchema(const arrow::Schema& schema, const std::vector<std::string>* wanted) {
  for (int i = 0; i < schema.num_fields(); ++i) {
    const std::string& name = schema.field(i)->name();
    const arrow::DataType& type = *schema.field(i)->type();
    columns_.push_back(name);
    Column& column = places_.emplace_back();
    column.is_list = IsList(type);
    const arrow::DataType& value =
        column.is_list ? *static_cast<const arrow::BaseListType&>(type).value_type() : type;
    if (!IsSimple(value)) {
      unreadable_[name] = absl::StrCat("is ", type.ToString());
      continue;
    }
    if (wanted != nullptr && std::find(wanted->begin(), wanted->end(), name) == wanted->end()) {
      continue;
    }
    column.place = static_cast<int>(read_columns_.size());
    read_columns_.push_back(i);
    if (!column.is_list) continue;
    lists_.push_back(name);
    const auto separator = separators_.find(name);
    if (separator != separators_.end()) column.separator = separator->second;
  }
}

std::string ArrowRows::WhyUnreadable(const std::string& column) const {
  const auto found = unreadable_.find(column);
  return found == unreadable_.end() ? "" : found->second;
}

void ArrowRows::SetBatch(std::shared_ptr<arrow::RecordBatch> batch) {
  batch_ = std::move(batch);
  at_ = 0;
}

absl::Status ArrowRows::Next(TextRow* row) {
  text_.clear();
  ends_.clear();
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = places_[c];
    if (column.place != kUnread) {
      const arrow::Array& values = *batch_->column(column.place);
      if (!column.is_list) {
        Append(values, at_, &text_);
      } else if (!AppendList(values, at_, column.separator, &text_)) {
        return absl::DataLossError(absl::StrCat(
            "a value of the list '", columns_[c], "' contains '", std::string(1, column.separator),
            "', which separates the values of a list: replace it in the data"));
      }
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
  return absl::OkStatus();
}

}  // namespace cistern
