// The first rows of a table, as a training reads them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/table_layout.h"

namespace cistern::app {

struct TableHeadOptions {
  std::string table;   // a file, a folder, a pattern, or several with commas between them
  uint64_t rows = 10;  // at most
  // As TableOptions has them.
  char delimiter = 0;
  std::vector<std::string> columns, add_columns;
};

struct TableHead {
  data::TableLayout layout;  // with the columns: also those of parts and of folders
  std::vector<std::vector<std::string>> rows;  // the text of each column
};

// Parts of columns (part_columns.h) are those that the first rows of the table have.
//
// Errors as FindLayout and OpenLaidOut, with a missing file as kInvalidArgument.
absl::StatusOr<TableHead> ReadTableHead(const TableHeadOptions& options);

// The columns, and the rows, an array of texts each. Bytes that are not UTF-8 are escaped
// (ShownText).
nlohmann::ordered_json JsonOf(const TableHead& head);

}  // namespace cistern::app
