// The types of Parquet columns that data sets may have.
#pragma once

#include <parquet/schema.h>

#include "common/base/status.h"

namespace cistern::data {

// OK if the column can be a slot (whole numbers), or else a label or dense feature (numbers).
// kInvalidArgument names column, type and fix. position: of the column, for the message.
absl::Status CheckParquetType(const parquet::ColumnDescriptor& column, int position, bool is_slot);

// Whether the column holds integers without a sign.
bool IsUnsignedColumn(const parquet::ColumnDescriptor& column);

}  // namespace cistern::data
