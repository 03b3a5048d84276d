// Which files are tables of text.
#pragma once

#include <string>
#include <vector>

#include "app/data/table_options.h"
#include "common/base/status.h"

namespace cistern::app {

// Whether a file is a table and not a model file: by its name (*.csv, *.tsv, *.jsonl, compressed or
// not; *.parquet), or by its first lines (*.txt, *.data, *.json with an object a line ...); or a
// folder or pattern of such files.
bool IsTable(const std::string& path);

// The first option that is given although `path` is a model file or a run, not a table; "" for
// none. With an option a table may have any name.
std::string OptionWithoutTable(const std::string& path, const TableOptions& options);

// The name of one table whose files are those of the arguments. kInvalidArgument, with a fix: one
// is no table, or has a comma in its name.
absl::StatusOr<std::string> JoinTables(const std::string& first,
                                       const std::vector<std::string>& more);

}  // namespace cistern::app
