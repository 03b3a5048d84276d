// Reads and writes rows in the files of a saved model: each row is a line (value_text.h) or a
// record (value_binary.h), depending on the format of the save.
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

// OK if the format is valid: six_digits requires text.
absl::Status CheckFormat(const v1::SaveFormat& format);

// Whether the format preserves every bit of a sparse table, or of the dense table `table`.
bool IsExact(const v1::SaveFormat& format);
bool IsExact(const v1::SaveFormat& format, const v1::DenseTableSpec& table);

// Appends one row of a sparse table.
void AppendRow(const v1::SaveFormat& format, const ValueLayout& layout, Key key, const float* value,
               bool has_embedx, std::string* out);

// Appends row `row` of a dense table. In text, avg_w of ADAM_D2SUM is always 0, as in PSLib.
void AppendDenseRow(const v1::SaveFormat& format, const v1::DenseTableSpec& table, uint64_t row,
                    absl::Span<const float> values, std::string* out);

// Parses one row into *key, value[full_floats of the table] and *has_embedx. kDataLoss states what
// is wrong. Threads: each parser is used by one thread at a time.
using RowParser =
    std::function<absl::Status(absl::string_view row, Key* key, float* value, bool* has_embedx)>;

// A parser for rows of `layout`.
RowParser ParserOf(v1::SaveFormat::Kind kind, const ValueLayout& layout);
// A parser that converts rows of `from` to rows of `to`; kInvalidArgument if that is impossible
// (ValueUpgrade).
absl::StatusOr<RowParser> UpgradingParser(v1::SaveFormat::Kind kind, const ValueLayout& from,
                                          const ValueLayout& to);
// The parser for rows of the table `saved` that become rows of `table`: converts them if the two
// differ.
absl::StatusOr<RowParser> ParserFor(v1::SaveFormat::Kind kind, const v1::TableSpec& saved,
                                    const v1::TableSpec& table);
// A parser that converts rows without a schema to rows of `table` (LegacyRows).
RowParser LegacyParser(v1::SaveFormat::Kind kind, const v1::TableSpec& table,
                       CtrFields fields = {});

// kDataLoss: row `number` (from 1) of a file repeats the key of an earlier row.
absl::Status RepeatedKey(v1::SaveFormat::Kind kind, uint64_t number, Key key);

// Parses row `row` of a dense table and appends its columns to *values. On an error (kDataLoss,
// which states what is wrong) *values is unchanged. In text, avg_w of ADAM_D2SUM is ignored.
using DenseRowParser =
    std::function<absl::Status(absl::string_view text, uint64_t row, std::vector<float>* values)>;

DenseRowParser DenseParserOf(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& table);
// A parser that converts rows of `from` to rows of `to`: columns with the same name are kept, the
// others are set to 0.
DenseRowParser UpgradingDenseParser(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& from,
                                    const v1::DenseTableSpec& to);
// The dense form of ParserFor.
DenseRowParser DenseParserFor(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& saved,
                              const v1::DenseTableSpec& table);

}  // namespace cistern
