// The text form of a value: one line a row (spec/003 section 2.1).
//
//   ctr        key uid unseen_days delta_score show click embed_w embed_state.. slot
//              [embedx_state.. embedx_w..]          the bracket only where embedx exists
//   embedding  key w.. state..
//
// Fields are separated by one space. Numbers are the shortest decimal that reads back to the same
// bits (std::to_chars), so text is lossless.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/value_layout.h"

namespace cistern {

// Appends the line of one row, with its line end.
void AppendValueLine(const ValueLayout& layout, Key key, const float* value, bool full,
                     std::string* out);

// Parses one line (without its line end) into *key, value[full_floats] and *full.
// Accepts any run of spaces or tabs between fields. kDataLoss that names the field: not a number,
// not finite, too few, too many.
absl::Status ParseValueLine(const ValueLayout& layout, absl::string_view line, Key* key,
                            float* value, bool* full);

}  // namespace cistern
