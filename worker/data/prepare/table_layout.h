// Finds out how a text file is laid out as a table: its delimiter, whether it has a header line,
// and spaces around its fields.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/recipe.h"

namespace cistern {

struct TableLayout {
  TextFormat format = TextFormat::kCsv;  // kCsv, or kTsv: tabs, and quotes mean nothing
  char delimiter = ',';
  bool header = true;
  bool trim = false;                 // fields start with a space, as in "a, b"
  std::vector<std::string> columns;  // of the header, or "c1", "c2", ...
  std::vector<std::string> lists;    // columns of a Parquet file that hold lists
};

// Reads the first lines of the file, of the first file in a folder, or the schema of a Parquet
// file.
//
// The delimiter is the one of ',', tab, ';' and '|' that cuts these lines into equally many fields.
// The first line is data, not a header, if one of its fields is a number; numbers from 0 (as pandas
// writes them) are a header.
// kDataLoss: not text, an empty file, or a line that is too long. kInvalidArgument: a single
// column, from which nothing can be learned.
absl::StatusOr<TableLayout> FindLayout(const std::string& table);

}  // namespace cistern
