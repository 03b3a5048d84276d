// cistern data head: the command for app/data/table_head.h.
#include <memory>

#include "absl/strings/str_cat.h"
#include "app/data/table_file.h"
#include "app/data/table_head.h"
#include "cli/command/data_commands.h"
#include "cli/command/table_flags.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/shown_text.h"

namespace cistern::cli {
namespace {

struct HeadFlags {
  std::string table;
  std::vector<std::string> more;  // further files of the table
  app::TableHeadOptions options;
  std::string delimiter;
};

// A line for each column, because tables have more columns than a terminal.
std::string HeadText(const app::TableHead& head) {
  constexpr size_t kMostText = 24;
  std::vector<std::vector<std::string>> lines = {{"COLUMN"}};
  for (size_t i = 0; i < head.rows.size(); ++i) lines[0].push_back(absl::StrCat("ROW ", i + 1));
  for (size_t c = 0; c < head.layout.columns.size(); ++c) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(ShownText(head.layout.columns[c]));
    for (const std::vector<std::string>& row : head.rows) {
      line.push_back(row[c].size() <= kMostText
                         ? ShownText(row[c])
                         : absl::StrCat(ShownText(row[c], kMostText - 3), "..."));
    }
  }
  return AlignedText(lines);
}

absl::StatusOr<Report> RunHead(const HeadFlags& flags) {
  app::TableHeadOptions options = flags.options;
  CISTERN_ASSIGN_OR_RETURN(options.table, app::JoinTables(flags.table, flags.more));
  CISTERN_ASSIGN_OR_RETURN(options.delimiter, CharacterOf("--delimiter", flags.delimiter));
  CISTERN_ASSIGN_OR_RETURN(const app::TableHead head, app::ReadTableHead(options));
  return Report{app::JsonOf(head), HeadText(head), absl::OkStatus()};
}

}  // namespace

void AddHeadCommand(Command& data) {
  auto flags = std::make_shared<HeadFlags>();
  Command& command = data.Add("head", "Prints the first rows of a table, as init reads them.",
                              "cistern data head clicks.csv --rows 3");
  command.Argument(
      "TABLE", &flags->table,
      {"FILE", "The table: CSV, TSV or Parquet, a folder or a pattern.", "clicks.csv", kRequired});
  command.Arguments("FILE", &flags->more,
                    {"FILE", "More files of the table.", "part-1.csv part-2.csv"});
  command.Flag("--rows", &flags->options.rows, {"INT", "Rows to print, at most.", "--rows 3"});
  command.Flag("--delimiter", &flags->delimiter,
               {"CHAR", "What separates its fields; by default found.", "--delimiter ';'"});
  command.List("--columns", &flags->options.columns, true,
               {"NAME,...", "The names of its columns, if it has no header line.",
                "--columns label,I1..I13,C1..C26"});
  command.List("--add-column", &flags->options.add_columns, true,
               {"COLUMN,...", "Columns that some of the files lack; they are empty there.",
                "--add-column brand"});
  command.Does([flags](Console&) { return RunHead(*flags); });
}

}  // namespace cistern::cli
