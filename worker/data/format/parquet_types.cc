#include "worker/data/format/parquet_types.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace cistern::data {
namespace {

bool IsWhole(const parquet::ColumnDescriptor& column) {
  if (column.physical_type() != parquet::Type::INT32 &&
      column.physical_type() != parquet::Type::INT64) {
    return false;
  }
  const auto& logical = column.logical_type();
  return logical == nullptr || logical->is_none() || logical->is_int() || !logical->is_valid();
}

bool IsNumber(const parquet::ColumnDescriptor& column) {
  switch (column.physical_type()) {
    case parquet::Type::FLOAT:
    case parquet::Type::DOUBLE:
    case parquet::Type::BOOLEAN:
      return true;
    default:
      return IsWhole(column);
  }
}

std::string TypeName(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  std::string name = parquet::TypeToString(column.physical_type());
  if (logical != nullptr && !logical->is_none()) {
    absl::StrAppend(&name, " (", logical->ToString(), ")");
  }
  return name;
}

}  // namespace

bool IsUnsignedColumn(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  return logical != nullptr && logical->is_int() &&
         !static_cast<const parquet::IntLogicalType&>(*logical).is_signed();
}

absl::Status CheckParquetType(const parquet::ColumnDescriptor& column, int position, bool is_slot) {
  if (is_slot ? IsWhole(column) : IsNumber(column)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "column '", column.name(), "' (number ", position, ") is ", TypeName(column), ", but ",
      is_slot ? "a slot takes whole numbers: cast it to int64"
              : "a label, dense feature or weight takes numbers: cast it to float",
      "; if the columns are not in the order of the model, list them in a _metadata.json in the "
      "same folder"));
}

}  // namespace cistern::data
