// The flags of a table of text, and what is said about one, for init, train and tune.
#pragma once

#include <optional>
#include <string>

#include "app/data/table_model.h"
#include "app/data/table_options.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/report.h"

namespace cistern::cli {

// Flags that must be parsed into TableOptions, which holds the others directly.
struct TableModelFlags {
  app::TableOptions options;
  std::string delimiter, separator;  // "": found
  std::string label_threshold;       // a number; "": none
};

// Adds --label, --positive, --dense, --sparse, --ignore, --model and the flags of the layout.
void AddTableModelFlags(Command& command, TableModelFlags* flags);
absl::StatusOr<app::TableOptions> TableOptionsOf(const TableModelFlags& flags);

// One character, as people type it (app::ParseCharacter).
absl::StatusOr<char> CharacterOf(const char* flag, const std::string& word);
// The number of --label-threshold; none for "".
absl::StatusOr<std::optional<double>> ThresholdOf(const std::string& text);

// kInvalidArgument, with a fix, unless `option` is empty: it is for tables, and `path` is no table
// but `what`.
absl::Status CheckNoTableFlag(const std::string& option, const std::string& path,
                              const std::string& what);

// Adds what to type to an error about a table.
absl::Status WithTableFix(const absl::Status& status);

// Shows on the console what becomes of a table, until Ctrl-C. console: outlives the job.
app::TableCalls TableCallsOn(Console& console, const app::TableOptions& options);

// A row per column: type, distinct and missing values, role.
std::string ColumnsText(const app::InspectedTable& table);

}  // namespace cistern::cli
