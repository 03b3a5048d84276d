#include "app/table/tables.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "app/fleet/fleet_session.h"
#include "common/base/nearest_name.h"
#include "common/value/accessor.h"
#include "common/value/schema.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern::app {
namespace {

void Add(const v1::TableStats& part, TableCounts* table) {
  table->rows += part.rows();
  table->embedx_rows += part.embedx_rows();
  table->value_bytes += part.value_bytes();
  table->memory_bytes += part.memory_bytes();
}

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

absl::Status NoSuchTable(const v1::Schema& schema, const std::string& name) {
  const std::string nearest = NearestName(name, TableNames(schema));
  const absl::Status missing =
      absl::NotFoundError(absl::StrCat("the servers have no table '", name, "'"));
  if (!nearest.empty()) return WithFix(missing, absl::StrCat("did you mean '", nearest, "'?"));
  return WithFix(missing, "list those that there are: cistern table ls");
}

}  // namespace

absl::StatusOr<std::vector<TableCounts>> CountTables(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<v1::StatsReply> replies, StatsOn(client));
  std::vector<TableCounts> tables = TablesOf(client);
  const size_t sparse = static_cast<size_t>(client.schema().tables_size());
  for (const v1::StatsReply& reply : replies) {
    for (int i = 0; i < reply.tables_size(); ++i) Add(reply.tables(i), &tables.at(i));
    for (int i = 0; i < reply.dense_tables_size(); ++i) {
      Add(reply.dense_tables(i), &tables.at(sparse + i));
    }
  }
  return tables;
}

absl::StatusOr<TableCounts> CountTable(ParameterClient& client, const std::string& name) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<TableCounts> tables, CountTables(client));
  for (const TableCounts& table : tables) {
    if (table.name == name) return table;
  }
  return NoSuchTable(client.schema(), name);
}

absl::StatusOr<TableId> FindSparseTable(const v1::Schema& schema, const std::string& name) {
  for (int t = 0; t < schema.tables_size(); ++t) {
    if (schema.tables(t).name() == name) return static_cast<TableId>(t);
  }
  for (const v1::DenseTableSpec& dense : schema.dense_tables()) {
    if (dense.name() != name) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "' is dense: it has no keys, and no rows of features"));
  }
  return NoSuchTable(schema, name);
}

absl::StatusOr<FoundRow> FindRow(ParameterClient& client, const std::string& table, Key key) {
  if (key == kReservedKey64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", key, " is reserved (it marks an empty place in hash tables): no table holds it"));
  }
  CISTERN_ASSIGN_OR_RETURN(const TableId id, FindSparseTable(client.schema(), table));
  const ServerLink& server =
      client.servers()[client.shard_map().server(client.shard_map().shard(key))];
  v1::GetRowRequest request;
  *request.mutable_identity() = client.identity();
  request.set_table(id);
  request.set_key(key);
  FoundRow found;
  found.server = server.name;
  CISTERN_RETURN_IF_ERROR(AddContext(server.control->GetRow(request, &found.row), server.name));
  return found;
}

absl::StatusOr<Key> ParseKey(const std::string& text) {
  Key key = 0;
  const bool hex = absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X");
  if (hex ? absl::SimpleHexAtoi(text, &key) : absl::SimpleAtoi(text, &key)) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not a key: expected a whole number below 2^64, or 0x and hex digits"));
}

absl::StatusOr<Key> KeyOfText(const std::string& text, const std::string& folder) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const data::FoundRecipe recipe, data::ReadRecipe(files, folder));
  const auto encoder = data::OwnedEncoder::Open(recipe.recipe, recipe.vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' does not name its column: COLUMN=TEXT"));
  }
  CISTERN_ASSIGN_OR_RETURN(
      const std::vector<Key> keys,
      (*encoder)->encoder().KeysOf(text.substr(0, equals), text.substr(equals + 1)));
  if (keys.size() == 1) return keys[0];
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' has ", keys.size(), " keys: name a single value",
                   keys.empty() ? " that is neither missing nor rare" : ""));
}

}  // namespace cistern::app
