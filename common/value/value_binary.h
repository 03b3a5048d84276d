// The binary form of a row: one record each, little-endian (docs/formats.md; PSLib's).
//
//   u32 length (of the record: itself, the key and the cells)   u64 key   f32 cells[]
//
//   ctr        the cells of the value (value_layout.h): all, or those before embedx where it does
//              not exist
//   embedding  all cells of the value
//   dense      the key is the number of the row in the whole table; a cell a column
//
// Lossless, and about as large as the row in memory. A reader refuses what is not finite, as it
// does in text.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/value/value_layout.h"

namespace cistern {

// Bytes before the cells.
inline constexpr size_t kRecordHeadBytes = 12;

// Appends the record of one row.
void AppendValueRecord(const ValueLayout& layout, Key key, const float* value, bool full,
                       std::string* out);

// Parses one whole record into *key, value[full_floats] and *full; the cells of an absent embedx
// are zero. kDataLoss: a length that is not its own, or of neither form of the value; a cell that
// is not finite.
absl::Status ParseValueRecord(const ValueLayout& layout, absl::string_view record, Key* key,
                              float* value, bool* full);

// Appends the record of row `row` of a dense table.
void AppendDenseRecord(uint64_t row, absl::Span<const float> values, std::string* out);

// Parses a record of row `row` and appends its `columns` cells to *values. kDataLoss as above, and
// where it is another row; *values is then as it was.
absl::Status ParseDenseRecord(absl::string_view record, uint64_t row, size_t columns,
                              std::vector<float>* values);

// The key and the cells of a whole record, whatever they mean. kDataLoss: a length that is not its
// own.
absl::Status SplitRecord(absl::string_view record, Key* key, std::vector<float>* cells);

}  // namespace cistern
