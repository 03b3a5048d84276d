// The binary form of a row: one little-endian record per row (docs/formats.md), as in PSLib.
//
//   u32 length (of the record: itself, the key and the cells)   u64 key   f32 cells[]
//
//   ctr        the cells of the value (value_layout.h): all of them, or only those before embedx if
//              it does not exist
//   embedding  all cells of the value
//   dense      the key is the index of the row in the whole table; one cell per column
//
// The form is lossless and about as large as the row in memory. Readers reject cells that are not
// finite, as in the text form.
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
void AppendValueRecord(const ValueLayout& layout, Key key, const float* value, bool has_embedx,
                       std::string* out);

// Parses one whole record into *key, value[full_floats] and *has_embedx; the cells of an absent
// embedx become zero. kDataLoss: the length field differs from the record's size or fits neither
// form of the value, or a cell is not finite.
absl::Status ParseValueRecord(const ValueLayout& layout, absl::string_view record, Key* key,
                              float* value, bool* has_embedx);

// Appends the record of row `row` of a dense table.
void AppendDenseRecord(uint64_t row, absl::Span<const float> values, std::string* out);

// Parses the record of row `row` and appends its `columns` cells to *values. kDataLoss as above, or
// if it is the record of another row; *values is then unchanged.
absl::Status ParseDenseRecord(absl::string_view record, uint64_t row, size_t columns,
                              std::vector<float>* values);

// Splits a whole record into its key and cells without interpreting them. kDataLoss if the length
// field differs from the record's size.
absl::Status SplitRecord(absl::string_view record, Key* key, std::vector<float>* cells);

}  // namespace cistern
