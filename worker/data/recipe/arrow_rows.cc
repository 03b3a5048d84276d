#include "worker/data/recipe/arrow_rows.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "worker/data/recipe/utf8_check.h"

namespace cistern::data {
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
absl::string_view BytesOf(const arrow::Array& array, int64_t i) {
  const auto bytes = static_cast<const ArrayType&>(array).GetView(i);
  return {bytes.data(), bytes.size()};
}

// Older programs write text as bytes without saying that it is text.
bool LooksLikeText(absl::string_view bytes) {
  const auto is_control = [](unsigned char c) {
    return c < ' ' && c != '\t' && c != '\n' && c != '\r';
  };
  return IsUtf8(bytes) && std::none_of(bytes.begin(), bytes.end(), is_control);
}

void AppendBinary(absl::string_view bytes, std::string* text) {
  text->append(LooksLikeText(bytes) ? std::string(bytes) : absl::BytesToHexString(bytes));
}

// RFC 9562, section 4: 919108f7-52d1-4320-9bac-f847db4148a8.
void AppendUuid(absl::string_view bytes, std::string* text) {
  std::string digits = absl::BytesToHexString(bytes);
  for (const size_t at : {20, 16, 12, 8}) {
    if (at < digits.size()) digits.insert(at, 1, '-');
  }
  text->append(digits);
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

// With a point, because an amount is no code.
void AppendSeconds(double seconds, std::string* text) {
  const size_t begin = text->size();
  AppendNumber(seconds, text);
  if (text->find_first_of(".e", begin) == std::string::npos) text->append(".0");
}

void AppendDuration(const arrow::Array& array, int64_t i, std::string* text) {
  const auto unit = static_cast<const arrow::DurationType&>(*array.type()).unit();
  const auto count = static_cast<double>(static_cast<const arrow::DurationArray&>(array).Value(i));
  AppendSeconds(count / static_cast<double>(PerSecond(unit)), text);
}

// A month is 30 days, as where PostgreSQL turns intervals into seconds.
void AppendInterval(double months, double days, double seconds, std::string* text) {
  AppendSeconds((30 * months + days) * 86400 + seconds, text);
}

void AppendMonthDayNano(const arrow::Array& array, int64_t i, std::string* text) {
  const auto value = static_cast<const arrow::MonthDayNanoIntervalArray&>(array).GetValue(i);
  AppendInterval(value.months, value.days, static_cast<double>(value.nanoseconds) / 1e9, text);
}

void AppendDayTime(const arrow::Array& array, int64_t i, std::string* text) {
  const auto value = static_cast<const arrow::DayTimeIntervalArray&>(array).GetValue(i);
  AppendInterval(0, value.days, value.milliseconds / 1e3, text);
}

constexpr int kIntervalBytes = 12;

// Parquet's INTERVAL: months, days and milliseconds, 32 bits each, without a sign.
void AppendParquetInterval(absl::string_view bytes, std::string* text) {
  uint32_t counts[3];
  std::memcpy(counts, bytes.data(), sizeof(counts));
  AppendInterval(counts[0], counts[1], counts[2] / 1e3, text);
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

bool IsBytes(const arrow::DataType& type, int bytes) {
  return type.id() == arrow::Type::FIXED_SIZE_BINARY &&
         static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width() == bytes;
}

bool IsList(const arrow::DataType& type) {
  return type.id() != arrow::Type::MAP &&
         (arrow::is_list_like(type.id()) || arrow::is_list_view(type.id()));
}

// Types that mean more than what they are stored as.
constexpr char kUuid[] = "arrow.uuid", kBool8[] = "arrow.bool8";

bool HasOwnText(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return false;
  const std::string name = static_cast<const arrow::ExtensionType&>(type).extension_name();
  return name == kUuid || name == kBool8;
}

// What a value is read as: JSON is text, and a tensor of a fixed shape is a list.
const arrow::DataType& StoredType(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION || HasOwnText(type)) return type;
  return StoredType(*static_cast<const arrow::ExtensionType&>(type).storage_type());
}

std::shared_ptr<arrow::Array> StoredArray(std::shared_ptr<arrow::Array> array) {
  if (array->type_id() != arrow::Type::EXTENSION || HasOwnText(*array->type())) return array;
  return StoredArray(static_cast<const arrow::ExtensionArray&>(*array).storage());
}

// Whether all lists are as long, and their values fractions: an embedding.
bool IsVector(const arrow::DataType& type) {
  constexpr int kMaxListElements = 1024;
  if (type.id() != arrow::Type::FIXED_SIZE_LIST) return false;
  const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
  return arrow::is_floating(StoredType(*list.value_type()).id()) && list.list_size() > 0 &&
         list.list_size() <= kMaxListElements;
}

bool IsSimple(const arrow::DataType& type);

bool IsSimpleMap(const arrow::DataType& type) {
  if (type.id() != arrow::Type::MAP) return false;
  const auto& map = static_cast<const arrow::MapType&>(type);
  return IsSimple(StoredType(*map.key_type())) && IsSimple(StoredType(*map.item_type()));
}

// Whether Append knows the type.
bool IsSimple(const arrow::DataType& type) {
  const arrow::Type::type id = type.id();
  if (id == arrow::Type::DICTIONARY) {
    return IsSimple(StoredType(*static_cast<const arrow::DictionaryType&>(type).value_type()));
  }
  return id == arrow::Type::NA || arrow::is_primitive(id) || arrow::is_base_binary_like(id) ||
         arrow::is_binary_view_like(id) || arrow::is_fixed_size_binary(id) || HasOwnText(type);
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
      return absl::StrAppend(text, BytesOf<arrow::BinaryArray>(array, i));
    case arrow::Type::STRING_VIEW:
      return absl::StrAppend(text, BytesOf<arrow::BinaryViewArray>(array, i));
    case arrow::Type::LARGE_STRING:
      return absl::StrAppend(text, BytesOf<arrow::LargeBinaryArray>(array, i));
    case arrow::Type::BINARY:
      return AppendBinary(BytesOf<arrow::BinaryArray>(array, i), text);
    case arrow::Type::BINARY_VIEW:
      return AppendBinary(BytesOf<arrow::BinaryViewArray>(array, i), text);
    case arrow::Type::LARGE_BINARY:
      return AppendBinary(BytesOf<arrow::LargeBinaryArray>(array, i), text);
    case arrow::Type::FIXED_SIZE_BINARY:
      return AppendBinary(BytesOf<arrow::FixedSizeBinaryArray>(array, i), text);
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
    case arrow::Type::INTERVAL_MONTHS:
      return AppendInterval(static_cast<const arrow::MonthIntervalArray&>(array).Value(i), 0, 0,
                            text);
    case arrow::Type::INTERVAL_DAY_TIME:
      return AppendDayTime(array, i, text);
    case arrow::Type::INTERVAL_MONTH_DAY_NANO:
      return AppendMonthDayNano(array, i, text);
    case arrow::Type::DECIMAL32:
      return AppendDecimal<arrow::Decimal32Array>(array, i, text);
    case arrow::Type::DECIMAL64:
      return AppendDecimal<arrow::Decimal64Array>(array, i, text);
    case arrow::Type::DECIMAL128:
      return AppendDecimal<arrow::Decimal128Array>(array, i, text);
    case arrow::Type::DECIMAL256:
      return AppendDecimal<arrow::Decimal256Array>(array, i, text);
    case arrow::Type::DICTIONARY: {
      const auto& encoded = static_cast<const arrow::DictionaryArray&>(array);
      return Append(*StoredArray(encoded.dictionary()), encoded.GetValueIndex(i), text);
    }
    case arrow::Type::EXTENSION: {
      const arrow::Array& stored = *static_cast<const arrow::ExtensionArray&>(array).storage();
      if (stored.type_id() == arrow::Type::FIXED_SIZE_BINARY) {
        return AppendUuid(BytesOf<arrow::FixedSizeBinaryArray>(stored, i), text);
      }
      text->push_back(static_cast<const arrow::Int8Array&>(stored).Value(i) != 0 ? '1' : '0');
      return;
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

std::pair<int64_t, int64_t> BoundsOf(const arrow::Array& array, int64_t i) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
    case arrow::Type::MAP:
      return BoundsIn<arrow::ListArray>(array, i);
    case arrow::Type::LARGE_LIST:
      return BoundsIn<arrow::LargeListArray>(array, i);
    case arrow::Type::LIST_VIEW:
      return BoundsIn<arrow::ListViewArray>(array, i);
    case arrow::Type::LARGE_LIST_VIEW:
      return BoundsIn<arrow::LargeListViewArray>(array, i);
    default:
      return BoundsIn<arrow::FixedSizeListArray>(array, i);
  }
}

std::shared_ptr<arrow::Array> ValuesOf(const arrow::Array& array) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return static_cast<const arrow::ListArray&>(array).values();
    case arrow::Type::LARGE_LIST:
      return static_cast<const arrow::LargeListArray&>(array).values();
    case arrow::Type::LIST_VIEW:
      return static_cast<const arrow::ListViewArray&>(array).values();
    case arrow::Type::LARGE_LIST_VIEW:
      return static_cast<const arrow::LargeListViewArray&>(array).values();
    default:
      return static_cast<const arrow::FixedSizeListArray&>(array).values();
  }
}

std::shared_ptr<arrow::Array> ItemsOf(const arrow::Array& array) {
  return StoredArray(ValuesOf(array));
}

// The array that `path` leads to from `array`; outer: gets the structs on the way.
std::shared_ptr<arrow::Array> Follow(std::shared_ptr<arrow::Array> array,
                                     const std::vector<int>& path,
                                     std::vector<std::shared_ptr<arrow::Array>>* outer) {
  array = StoredArray(std::move(array));
  for (const int field : path) {
    outer->push_back(array);
    array = StoredArray(static_cast<const arrow::StructArray&>(*array).field(field));
  }
  return array;
}

bool AnyIsNull(const std::vector<std::shared_ptr<arrow::Array>>& structs, int64_t i) {
  return std::any_of(structs.begin(), structs.end(),
                     [i](const auto& array) { return array->IsNull(i); });
}

}  // namespace

void ArrowRows::AddField(const std::string& name, const arrow::DataType& declared, int root,
                         Column column, const std::vector<std::string>* wanted) {
  const arrow::DataType& type = StoredType(declared);
  if (!column.is_list && !column.element && IsVector(type)) {
    const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
    for (int i = 0; i < list.list_size(); ++i) {
      column.element = i;
      AddField(absl::StrCat(name, ".", i), *list.value_type(), root, column, wanted);
    }
    return;
  }
  const bool is_list = !column.is_list && IsList(type);
  column.is_list = column.is_list || is_list;
  const arrow::DataType& value =
      is_list ? StoredType(*static_cast<const arrow::BaseListType&>(type).value_type()) : type;
  column.is_map = !column.is_list && IsSimpleMap(value);
  const bool is_readable = column.is_map || IsSimple(value);
  if (!is_readable) unreadable_[name] = absl::StrCat("is ", type.ToString());
  if (value.id() == arrow::Type::STRUCT && value.num_fields() > 0) {
    for (int i = 0; i < value.num_fields(); ++i) {
      Column inner = column;
      (column.is_list ? inner.path_in_list : inner.path).push_back(i);
      const arrow::Field& field = *value.field(i);
      AddField(absl::StrCat(name, ".", field.name()), *field.type(), root, std::move(inner),
               wanted);
    }
    return;
  }
  columns_.push_back(name);
  const bool is_wanted =
      wanted == nullptr || std::find(wanted->begin(), wanted->end(), name) != wanted->end();
  if (is_readable && is_wanted) {
    if (read_columns_.empty() || read_columns_.back() != root) read_columns_.push_back(root);
    column.place = static_cast<int>(read_columns_.size()) - 1;
    column.is_interval = intervals_.count(name) > 0 && IsBytes(value, kIntervalBytes);
    if (column.is_list) lists_.push_back(name);
    column.separator = SeparatorOf(separators_, name);
  }
  places_.push_back(std::move(column));
}

void ArrowRows::SetSchema(const arrow::Schema& schema, const std::vector<std::string>* wanted,
                          std::set<std::string> intervals) {
  intervals_ = std::move(intervals);
  for (int i = 0; i < schema.num_fields(); ++i) {
    AddField(schema.field(i)->name(), *schema.field(i)->type(), i, {}, wanted);
  }
}

std::string ArrowRows::WhyUnreadable(const std::string& column) const {
  const auto found = unreadable_.find(column);
  return found == unreadable_.end() ? "" : found->second;
}

ArrowRows::Values ArrowRows::ValuesIn(const Column& column) const {
  Values values;
  if (column.place == kUnread) return values;
  values.values = Follow(batch_->column(column.place), column.path, &values.outer);
  if (column.element) values.items = ItemsOf(*values.values);
  if (column.is_map) {
    const auto& map = static_cast<const arrow::MapArray&>(*values.values);
    values.keys = StoredArray(map.keys());
    values.items = StoredArray(map.items());
  }
  if (!column.is_list) return values;
  values.items = Follow(ItemsOf(*values.values), column.path_in_list, &values.in_list);
  return values;
}

void ArrowRows::SetBatch(std::shared_ptr<arrow::RecordBatch> batch) {
  batch_ = std::move(batch);
  at_ = 0;
  values_.clear();
  if (batch_ == nullptr) return;
  for (const Column& column : places_) values_.push_back(ValuesIn(column));
}

absl::Status ArrowRows::AppendField(size_t c) {
  const Values& from = values_[c];
  if (from.values == nullptr || AnyIsNull(from.outer, at_)) return absl::OkStatus();
  if (from.values->IsNull(at_)) return absl::OkStatus();
  if (places_[c].is_list || places_[c].is_map) return AppendEntries(c);
  if (places_[c].element) {
    Append(*from.items, BoundsOf(*from.values, at_).first + *places_[c].element, &text_);
    return absl::OkStatus();
  }
  if (places_[c].is_interval) {
    AppendParquetInterval(BytesOf<arrow::FixedSizeBinaryArray>(*from.values, at_), &text_);
  } else {
    Append(*from.values, at_, &text_);
  }
  return absl::OkStatus();
}

absl::Status ArrowRows::AppendEntries(size_t c) {
  const Values& from = values_[c];
  const char separator = places_[c].separator;
  const size_t begin = text_.size();
  const auto [first, end] = BoundsOf(*from.values, at_);
  for (int64_t k = first; k < end; ++k) {
    if (AnyIsNull(from.in_list, k) || from.items->IsNull(k)) continue;
    if (text_.size() > begin) text_.push_back(separator);
    const size_t value = text_.size();
    if (from.keys != nullptr) {
      Append(*from.keys, k, &text_);
      text_.push_back(':');
    }
    Append(*from.items, k, &text_);
    if (!absl::StrContains(absl::string_view(text_).substr(value), separator)) continue;
    return absl::DataLossError(absl::StrCat(
        "a value of the ", places_[c].is_map ? "map" : "list", " '", columns_[c], "' contains '",
        std::string(1, separator), "', which separates its values: replace it in the data"));
  }
  return absl::OkStatus();
}

absl::Status ArrowRows::Next(TextRow* row) {
  text_.clear();
  ends_.clear();
  for (size_t c = 0; c < columns_.size(); ++c) {
    CISTERN_RETURN_IF_ERROR(AppendField(c));
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

}  // namespace cistern::data
