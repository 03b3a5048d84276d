#include "cli/command/table_commands.h"

#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "app/table/tables.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

Report ReportOf(const std::vector<app::TableCounts>& tables) {
  Report report;
  report.json["tables"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {
      {"TABLE", "KIND", "FLOATS", "ROWS", "WITH EMBEDX", "VALUES", "MEMORY"}};
  for (const app::TableCounts& table : tables) {
    report.json["tables"].push_back({{"name", table.name},
                                     {"kind", table.kind},
                                     {"floats", table.width},
                                     {"rows", table.rows},
                                     {"embedx_rows", table.embedx_rows},
                                     {"value_bytes", table.value_bytes},
                                     {"memory_bytes", table.memory_bytes}});
    rows.push_back({table.name, table.kind, absl::StrCat(table.width), absl::StrCat(table.rows),
                    absl::StrCat(table.embedx_rows), BytesText(table.value_bytes),
                    BytesText(table.memory_bytes)});
  }
  report.text = AlignedText(rows);
  return report;
}

Report ReportOf(const app::FoundRow& found, const std::string& table, Key key) {
  const v1::GetRowReply& reply = found.row;
  const std::string& server = found.server;
  Report report;
  report.json["table"] = table;
  report.json["key"] = key;
  report.json["found"] = reply.found();
  report.json["shard"] = reply.shard();
  report.json["server"] = server;
  if (!reply.found()) {
    report.outcome =
        absl::NotFoundError(absl::StrCat("table '", table, "' holds no key ", key, " (shard ",
                                         reply.shard(), ", server ", server, ")"));
    return report;
  }
  report.json["fields"] = nlohmann::ordered_json::object();
  std::vector<std::vector<std::string>> rows = {{"FIELD", "VALUE"}};
  for (int i = 0; i < reply.fields_size() && i < reply.field_names_size(); ++i) {
    report.json["fields"][reply.field_names(i)] = reply.fields(i);
    rows.push_back({reply.field_names(i), absl::StrFormat("%.9g", reply.fields(i))});
  }
  report.json["line"] = reply.text();
  report.text = absl::StrCat("table ", table, "  key ", key, "  shard ", reply.shard(), "  server ",
                             server, "\n", AlignedText(rows));
  return report;
}

// The key that is typed: a number or, with a recipe, "column=text".
absl::StatusOr<Key> KeyOfFlags(const TableFlags& flags) {
  if (flags.key.find('=') == std::string::npos) {
    const absl::StatusOr<Key> key = app::ParseKey(flags.key);
    if (key.ok()) return key;
    return WithFix(key.status(), absl::StrCat("for text, name its column and the recipe: COLUMN=",
                                              flags.key, " --recipe DIR"));
  }
  if (!flags.recipe.empty()) return app::KeyOfText(flags.key, flags.recipe);
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     "'", flags.key, "' is text, whose key depends on how the data was converted")),
                 "add --recipe DIR (the data set or the run)");
}

void AddFlags(Command& command, TableFlags* flags) {
  AddFleetFlags(command, &flags->fleet, false);
}

}  // namespace

absl::StatusOr<Report> RunTableList(const TableFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<app::TableCounts> tables,
                           app::CountTables(fleet->client()));
  return ReportOf(tables);
}

absl::StatusOr<Report> RunTableShow(const TableFlags& flags) {
  if (flags.table.empty()) return RunTableList(flags);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  if (flags.key.empty()) {
    CISTERN_ASSIGN_OR_RETURN(const app::TableCounts table,
                             app::CountTable(fleet->client(), flags.table));
    return ReportOf(std::vector<app::TableCounts>{table});
  }
  CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOfFlags(flags));
  CISTERN_ASSIGN_OR_RETURN(const app::FoundRow found,
                           app::FindRow(fleet->client(), flags.table, key));
  return ReportOf(found, flags.table, key);
}

void AddTableCommands(Command& root) {
  auto flags = std::make_shared<TableFlags>();
  Command& table = root.Add("table", "Prints a fleet's tables and their rows.",
                            "cistern table show deep 1234 --servers 127.0.0.1:7700");
  Command& list = table.Add("ls", "Lists every table with its kind, rows and memory.",
                            "cistern table ls --servers 127.0.0.1:7700");
  AddFlags(list, flags.get());
  list.Does([flags](Console&) { return RunTableList(*flags); });
  Command& show = table.Add("show", "Prints one row by its key, or the counts of a table.",
                            "cistern table show deep 1234 --servers 127.0.0.1:7700");
  show.Argument("TABLE", &flags->table, {"NAME", "Name of the table; by default all.", "deep"});
  show.Argument(
      "KEY", &flags->key,
      {"KEY", "Key: decimal, or hexadecimal after 0x; with --recipe also COLUMN=TEXT.", "1234"});
  show.Flag("--recipe", &flags->recipe,
            {"FILE|DIR", "The recipe by which COLUMN=TEXT becomes a key.", "--recipe data/train"});
  AddFlags(show, flags.get());
  show.Does([flags](Console&) { return RunTableShow(*flags); });
  Command& hist = table.Add("hist", "Prints the histogram of one field over all rows.",
                            "cistern table hist deep --servers 127.0.0.1:7700 --field show");
  hist.Argument("TABLE", &flags->table, {"NAME", "Name of a sparse table.", "deep", kRequired});
  hist.Flag("--field", &flags->field,
            {"NAME",
             "A field as cistern table show names it, or norm: the L2 norm of the weights. "
             "By default show of ctr tables, norm of others.",
             "--field unseen_days"});
  AddFlags(hist, flags.get());
  hist.Does([flags](Console&) { return RunTableHistogram(*flags); });
}

}  // namespace cistern::cli
