#include "cli/command/table_commands.h"

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/base/nearest_name.h"
#include "common/value/accessor.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern {
namespace {

// The counts of one table over the whole fleet.
struct TableCounts {
  std::string name, kind;
  uint64_t width = 0;  // floats per row
  uint64_t rows = 0, embedx_rows = 0, value_bytes = 0, memory_bytes = 0;

  void Add(const v1::TableStats& part) {
    rows += part.rows();
    embedx_rows += part.embedx_rows();
    value_bytes += part.value_bytes();
    memory_bytes += part.memory_bytes();
  }
};

// All tables in order of their ids, sparse before dense, with zero counts.
std::vector<TableCounts> TablesOf(const ParameterClient& client) {
  std::vector<TableCounts> tables;
  for (int i = 0; i < client.schema().tables_size(); ++i) {
    const v1::TableSpec& spec = client.schema().tables(i);
    TableCounts table;
    table.name = spec.name();
    table.kind = std::string(AccessorName(spec));
    table.width = client.layout(static_cast<TableId>(i)).full_floats();
    tables.push_back(table);
  }
  for (const v1::DenseTableSpec& spec : client.schema().dense_tables()) {
    TableCounts table;
    table.name = spec.name();
    table.kind = "dense";
    table.width = static_cast<uint64_t>(spec.columns_size());
    tables.push_back(table);
  }
  return tables;
}

absl::StatusOr<std::vector<TableCounts>> CountTables(ParameterClient& client) {
  std::vector<v1::StatsReply> replies(client.servers().size());
  CISTERN_RETURN_IF_ERROR(
      client.ForEachServer([&](size_t rank, ControlPlane& server) -> absl::Status {
        v1::StatsRequest request;
        *request.mutable_identity() = client.identity();
        return server.Stats(request, &replies[rank]);
      }));
  std::vector<TableCounts> tables = TablesOf(client);
  const size_t sparse = static_cast<size_t>(client.schema().tables_size());
  for (const v1::StatsReply& reply : replies) {
    for (int i = 0; i < reply.tables_size(); ++i) tables.at(i).Add(reply.tables(i));
    for (int i = 0; i < reply.dense_tables_size(); ++i) {
      tables.at(sparse + i).Add(reply.dense_tables(i));
    }
  }
  return tables;
}

Report ReportOf(const std::vector<TableCounts>& tables) {
  Report report;
  report.json["tables"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {
      {"TABLE", "KIND", "FLOATS", "ROWS", "WITH EMBEDX", "VALUES", "MEMORY"}};
  for (const TableCounts& table : tables) {
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

absl::Status NoSuchTable(const std::string& name, const std::vector<TableCounts>& tables) {
  std::vector<std::string> names;
  for (const TableCounts& table : tables) names.push_back(table.name);
  const std::string nearest = NearestName(name, names);
  return WithFix(absl::NotFoundError(absl::StrCat("the servers have no table '", name, "'")),
                 nearest.empty() ? "see cistern table ls --servers ..."
                                 : absl::StrCat("did you mean '", nearest, "'?"));
}

Report ReportOf(const v1::GetRowReply& reply, const std::string& table, Key key,
                const std::string& server) {
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
  const size_t equals = flags.key.find('=');
  if (equals == std::string::npos) {
    const absl::StatusOr<Key> key = ParseKey(flags.key);
    if (key.ok()) return key;
    return WithFix(key.status(), absl::StrCat("for text, name its column and the recipe: COLUMN=",
                                              flags.key, " --recipe DIR"));
  }
  if (flags.recipe.empty()) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(
            "'", flags.key, "' is text, whose key depends on how the data was converted")),
        "add --recipe DIR (the data set or the run)");
  }
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const FoundRecipe recipe, ReadRecipe(files, flags.recipe));
  const auto encoder = OwnedEncoder::Open(recipe.recipe, recipe.vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  CISTERN_ASSIGN_OR_RETURN(
      const std::vector<Key> keys,
      (*encoder)->encoder().KeysOf(flags.key.substr(0, equals), flags.key.substr(equals + 1)));
  if (keys.size() == 1) return keys[0];
  return absl::InvalidArgumentError(
      absl::StrCat("'", flags.key, "' has ", keys.size(), " keys: name a single value",
                   keys.empty() ? " that is neither missing nor rare" : ""));
}

absl::StatusOr<Report> ShowRow(ParameterClient& client, const std::string& name, Key key) {
  if (key == kReservedKey64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", key, " is reserved (it marks an empty place in hash tables): no table holds it"));
  }
  const v1::Schema& schema = client.schema();
  int table = 0;
  while (table < schema.tables_size() && schema.tables(table).name() != name) ++table;
  if (table == schema.tables_size()) {
    for (const v1::DenseTableSpec& dense : schema.dense_tables()) {
      if (dense.name() == name) {
        return absl::InvalidArgumentError(
            absl::StrCat("table '", name, "' is dense: it has no keys"));
      }
    }
    return NoSuchTable(name, TablesOf(client));
  }
  const ServerLink& server =
      client.servers()[client.shard_map().server(client.shard_map().shard(key))];
  v1::GetRowRequest request;
  *request.mutable_identity() = client.identity();
  request.set_table(static_cast<uint32_t>(table));
  request.set_key(key);
  v1::GetRowReply reply;
  CISTERN_RETURN_IF_ERROR(AddContext(server.control->GetRow(request, &reply), server.name));
  return ReportOf(reply, name, key, server.name);
}

void AddFlags(Command& command, TableFlags* flags) {
  AddFleetFlags(command, &flags->fleet, false);
}

}  // namespace

absl::StatusOr<Key> ParseKey(const std::string& text) {
  Key key = 0;
  const bool hex = absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X");
  if (hex ? absl::SimpleHexAtoi(text, &key) : absl::SimpleAtoi(text, &key)) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not a key: expected a whole number below 2^64, or 0x and hex digits"));
}

absl::StatusOr<Report> RunTableList(const TableFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<TableCounts> tables, CountTables(fleet->client()));
  return ReportOf(tables);
}

absl::StatusOr<Report> RunTableShow(const TableFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  if (!flags.key.empty()) {
    CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOfFlags(flags));
    return ShowRow(fleet->client(), flags.table, key);
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<TableCounts> tables, CountTables(fleet->client()));
  if (flags.table.empty()) return ReportOf(tables);
  for (const TableCounts& table : tables) {
    if (table.name == flags.table) return ReportOf(std::vector<TableCounts>{table});
  }
  return NoSuchTable(flags.table, tables);
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

}  // namespace cistern
