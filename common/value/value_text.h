// The text form of a row: one line each (spec/003 section 2.1; docs/formats.md).
//
//   ctr        key uid unseen_days delta_score show click embed_w embed_state.. slot
//              [embedx_state.. embedx_w..]          the bracket only where embedx exists
//   embedding  key w.. state..
//   dense      a number a column
//
// Fields are separated by one space. Numbers are the shortest decimal that reads back to the same
// bits (std::to_chars), so text is lossless unless a writer is asked for less. Readers accept any
// run of spaces and tabs between fields. Values are finite by the time they are written: NaN and
// Inf never reach a table, and a line that holds one is refused.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/value/value_layout.h"

namespace cistern {

// How numbers are written. kSix: 6 significant digits, and show and click as floats, as PSLib's
// streams write them: lossy, for readers that expect it.
enum class Digits { kShortest, kSix };

// Appends the line of one row, with its line end.
void AppendValueLine(const ValueLayout& layout, Key key, const float* value, bool full,
                     std::string* out, Digits digits = Digits::kShortest);

// Which of the fields that came late to ctr rows a line holds. A uid that is not there is 0, a slot
// that is not there -1.
struct CtrFields {
  bool uid = true, slot = true;
};

// Parses one line (without its line end) into *key, value[full_floats] and *full; the cells of an
// absent embedx are zero. kDataLoss that names the field: not a number, not finite, too few, too
// many.
absl::Status ParseValueLine(const ValueLayout& layout, absl::string_view line, Key* key,
                            float* value, bool* full, CtrFields fields = {});

// Fields of a line, the key too.
size_t CountFields(absl::string_view line);

// Appends the line of one row of a dense table, with its line end.
void AppendDenseLine(absl::Span<const float> values, std::string* out,
                     Digits digits = Digits::kShortest);

// Parses one line of a dense table and appends its `columns` numbers to *values. Errors as above;
// *values is then as it was.
absl::Status ParseDenseLine(absl::string_view line, size_t columns, std::vector<float>* values);

}  // namespace cistern
