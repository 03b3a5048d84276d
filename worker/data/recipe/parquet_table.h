// A Parquet file as a table of text, so that whatever reads CSV reads Parquet too; and predictions
// as a Parquet file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// Columns may hold text, bytes, numbers of any width, booleans, dates and times, times of day,
// durations, intervals, decimals, UUIDs, structs, and lists of these. As text, a null is empty, a
// boolean is 0 or 1, a number has the fewest digits that read back the same (1.0 is "1"), a time is
// "2026-05-31 12:00:00" in UTC, a time of day "16:27:05.5", a duration or interval its seconds
// ("90.0"; a month has 30 days), a UUID "919108f7-52d1-4320-9bac-f847db4148a8", bytes that are no
// text are hexadecimal, and the values of a list have the separator of the column between them.
// Dictionaries are their values, and extension types what they are stored as. TextRow::line is the
// number of the row, from 1.
//
// A struct is a column for each of its fields ("user.os"), and a list of structs a list for each
// ("seen.id"); a null struct has null fields.
//
// A list of fractions of a fixed size is a vector, and a column for each place ("emb.0").
// A map is its entries with the separator between them: "a:0.5|b:0.3".
//
// Columns of other types, such as lists of lists, are there, but cannot be read (WhyUnreadable).
//
// kInvalidArgument: no column can be read; kDataLoss: corrupt, or a list with a value that contains
// the separator; kUnimplemented: built without Parquet.
absl::StatusOr<std::unique_ptr<TextTable>> OpenParquetTable(const std::string& path,
                                                            const ListSeparators& separators = {});

// Predictions beside kept columns of text, in a file that appears under its name once it is closed.
//
// Threads: one at a time.
class ParquetPredictions {
 public:
  virtual ~ParquetPredictions() = default;
  // kept: the texts of the columns; an empty one becomes null. predictions: one of each column.
  virtual absl::Status Append(absl::Span<const std::string> kept,
                              absl::Span<const float> predictions) = 0;
  virtual absl::Status Close() = 0;
};
// kept: names of the columns of text. predictions: names of those of floats.
absl::StatusOr<std::unique_ptr<ParquetPredictions>> CreateParquetPredictions(
    FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
    const std::vector<std::string>& predictions);

}  // namespace cistern::data
