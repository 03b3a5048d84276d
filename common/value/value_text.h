// The text form of a row: one line per row (spec/003 section 2.1; docs/formats.md).
//
//   ctr        key uid unseen_days delta_score show click embed_w embed_state.. slot
//              [embedx_state.. embedx_w..]          the bracket only where embedx exists
//   embedding  key w.. state..
//   dense      one number per column
//
// Fields are separated by one space. Numbers are the shortest decimals that read back to the same
// bits (std::to_chars), so text is lossless unless the writer is told to shorten numbers. Readers
// accept any run of spaces and tabs between fields. Values are always finite: NaN and Inf never
// reach a table, and readers reject a line that contains one.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/value/old_rows.h"
#include "common/value/value_layout.h"

namespace cistern {

// How numbers are written. kSix: 6 significant digits, with show and click as floats, as PSLib's
// streams write them; lossy, for readers that expect this form.
enum class Digits { kShortest, kSix };

// Appends the line of one row, including the newline.
void AppendValueLine(const ValueLayout& layout, Key key, const float* value, bool has_embedx,
                     std::string* out, Digits digits = Digits::kShortest);

// Parses one line (without its newline) into *key, value[full_floats] and *has_embedx; the cells of
// an absent embedx become zero. kDataLoss, naming the field: not a number, not finite, too few
// fields, too many fields.
absl::Status ParseValueLine(const ValueLayout& layout, absl::string_view line, Key* key,
                            float* value, bool* has_embedx, CtrFields fields = {});

// The number of fields in a line, including the key.
size_t CountFields(absl::string_view line);

// Appends the line of one row of a dense table, including the newline.
void AppendDenseLine(absl::Span<const float> values, std::string* out,
                     Digits digits = Digits::kShortest);

// Parses one line of a dense table and appends its `columns` numbers to *values. On an error, which
// is as above, *values is unchanged.
absl::Status ParseDenseLine(absl::string_view line, size_t columns, std::vector<float>* values);

}  // namespace cistern
