// Rows as the files of a saved model hold them: a line or a record each (value_text.h,
// value_binary.h), as the format of the save says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/value/value_layout.h"
#include "common/value/value_text.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// OK if there is such a format: six_digits is for text.
absl::Status CheckFormat(const v1::SaveFormat& format);

// Whether rows of that format hold every bit of a table: of a sparse one, or of dense `table`.
bool IsExact(const v1::SaveFormat& format);
bool IsExact(const v1::SaveFormat& format, const v1::DenseTableSpec& table);

// Appends one row of a sparse table.
void AppendRow(const v1::SaveFormat& format, const ValueLayout& layout, Key key, const float* value,
               bool full, std::string* out);

// Appends row `row` of a dense table. In text, avg_w of ADAM_D2SUM is a constant 0, as in PSLib.
void AppendDenseRow(const v1::SaveFormat& format, const v1::DenseTableSpec& table, uint64_t row,
                    absl::Span<const float> values, std::string* out);

// Parses one row into *key, value[full_floats of the table] and *full. kDataLoss that says what is
// wrong. Each is one thread's.
using RowParser =
    std::function<absl::Status(absl::string_view row, Key* key, float* value, bool* full)>;

// Of rows of `layout`.
RowParser ParserOf(v1::SaveFormat::Kind kind, const ValueLayout& layout);
// Of rows of `from` that become rows of `to`; kInvalidArgument where they cannot (ValueUpgrade).
absl::StatusOr<RowParser> UpgradingParser(v1::SaveFormat::Kind kind, const ValueLayout& from,
                                          const ValueLayout& to);
// Of rows without a schema that become rows of `table` (LegacyRows).
RowParser LegacyParser(v1::SaveFormat::Kind kind, const v1::TableSpec& table,
                       CtrFields fields = {});

// Parses row `row` of a dense table and appends its columns to *values. kDataLoss that says what is
// wrong; then *values is as it was. In text, avg_w of ADAM_D2SUM is not read.
using DenseRowParser =
    std::function<absl::Status(absl::string_view text, uint64_t row, std::vector<float>* values)>;

DenseRowParser DenseParserOf(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& table);
// Of rows of `from` that become rows of `to`: columns of the same name are kept, others are 0.
DenseRowParser UpgradingDenseParser(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& from,
                                    const v1::DenseTableSpec& to);

}  // namespace cistern
