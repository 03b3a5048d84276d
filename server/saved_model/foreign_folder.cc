#include "server/saved_model/foreign_folder.h"

#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"
#include "common/value/table_choice.h"
#include "common/value/value_upgrade.h"

namespace cistern::server {
namespace {

constexpr int kFilesToTell = 3;

// The files of one table, keyed by the last number of their names.
using FilesByNumber = std::map<uint32_t, LoadPlan::File>;

// The name of the folder of table `number`.
std::string NumberName(uint32_t number) {
  return absl::StrCat(absl::Dec(number, absl::kZeroPad3));
}

// Reads the last number of "part-001-00017.gz"; false if the name has none.
bool ParseNumber(absl::string_view name, uint32_t* number) {
  absl::ConsumeSuffix(&name, ".gz");
  absl::ConsumeSuffix(&name, ".bin");
  const size_t dash = name.rfind('-');
  return dash != absl::string_view::npos && absl::SimpleAtoi(name.substr(dash + 1), number);
}

absl::StatusOr<FilesByNumber> ListTable(FileSystem& disk, const std::string& folder,
                                        const std::string& table) {
  const std::string path = absl::StrCat(folder, "/", table);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(path));
  FilesByNumber files;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "part-") || absl::EndsWith(name, ".tmp")) continue;
    LoadPlan::File file;
    file.record.name = absl::StrCat(table, "/", name);
    file.foreign = true;
    uint32_t number = 0;
    if (!CheckName(name).ok() || !ParseNumber(name, &number)) {
      return absl::DataLossError(
          absl::StrCat(path, "/", name,
                       ": its name does not end in the number of a shard or "
                       "server, so its rows are unknown; rename or remove it"));
    }
    const auto [place, is_new] = files.emplace(number, file);
    if (!is_new) {
      return absl::DataLossError(absl::StrCat(path, ": number ", number, " occurs twice, as ",
                                              place->second.record.name, " and as ",
                                              file.record.name));
    }
  }
  if (!files.empty()) return files;
  return absl::NotFoundError(absl::StrCat(path, " holds no part-* files"));
}

// The files as a list 0 .. n-1; kDataLoss if one is missing.
absl::StatusOr<std::vector<LoadPlan::File>> InOrder(const FilesByNumber& files,
                                                    const std::string& path) {
  std::vector<LoadPlan::File> ordered;
  for (const auto& [number, file] : files) {
    if (number != ordered.size()) {
      return absl::DataLossError(
          absl::StrCat(path, ": file number ", ordered.size(), " is missing before ", number));
    }
    ordered.push_back(file);
  }
  return ordered;
}

// Wraps a strict parser: if it fails where the tolerant one would succeed, the error names the
// upgrade option.
RowParser NamingUpgrade(v1::SaveFormat::Kind kind, const v1::TableSpec& spec, RowParser parse) {
  return [kind, spec, parse = std::move(parse)](absl::string_view row, Key* key, float* value,
                                                bool* has_embedx) {
    const absl::Status status = parse(row, key, value, has_embedx);
    if (status.ok() || !LegacyParser(kind, spec)(row, key, value, has_embedx).ok()) return status;
    return WithOptions(
        WithMessage(
            status,
            absl::StrCat(status.message(),
                         "; to convert rows of an older form or another dim, load with upgrade")),
        {"load.upgrade"});
  };
}

// Finds which fields the rows of a model have, from its first row without embedx. Reads a few files
// at most, and leaves their errors to the code that reads them completely.
CtrFields FieldsOfModel(FileSystem& disk, const std::string& folder,
                        const std::vector<LoadPlan::File>& files, const v1::TableSpec& spec) {
  const LegacyRows rows(spec);
  std::optional<CtrFields> found;
  int read = 0;
  for (const LoadPlan::File& file : files) {
    const bool is_text = FormOfName(file.record.name).kind() != v1::SaveFormat::BINARY;
    bool is_empty = true;
    const auto look = [&](absl::string_view row) {
      is_empty = false;
      found = is_text ? rows.FieldsOfShortLine(row) : rows.FieldsOfShortRecord(row);
      return found.has_value() ? absl::CancelledError("found") : absl::OkStatus();
    };
    ReadForeignFile(disk, folder, file.record.name, look).IgnoreError();
    if (found.has_value()) return *found;
    if (!is_empty && ++read == kFilesToTell) break;
  }
  return {};
}

std::function<absl::StatusOr<RowParser>(v1::SaveFormat::Kind)> ForeignParser(
    const SparseTable& table, bool upgrade, CtrFields fields) {
  return [spec = table.spec(), layout = table.layout(), upgrade,
          fields](v1::SaveFormat::Kind kind) -> absl::StatusOr<RowParser> {
    if (upgrade) return LegacyParser(kind, spec, fields);
    return NamingUpgrade(kind, spec, ParserOf(kind, layout));
  };
}

}  // namespace

absl::StatusOr<LoadPlan> PlanForeignLoad(FileSystem& disk, const TableStore& store,
                                         const std::string& folder, const LoadOptions& options) {
  if (store.schema_hash() == 0) {
    return WithOptions(absl::FailedPreconditionError(
                           absl::StrCat("server ", store.rank(),
                                        " has no tables, and a foreign model does not describe its "
                                        "own; create them first, from a model file")),
                       {"load.config"});
  }
  // Only the store's schema tells which tables are in the folder.
  const TableChoice choice =
      ChooseTables(store.schema(), store.schema(), options.tables, /*upgrade=*/false);
  if (!choice.difference.empty()) return absl::FailedPreconditionError(choice.difference);
  LoadPlan plan;
  plan.left_out = choice.left_out;
  uint32_t number = 0;
  for (const auto& table : store.dense_tables()) {
    const std::string name = NumberName(number++);
    LoadPlan::Dense& dense = plan.dense.emplace_back();
    if (!choice.Reads(table->spec().name())) continue;
    CISTERN_ASSIGN_OR_RETURN(const FilesByNumber files, ListTable(disk, folder, name));
    CISTERN_ASSIGN_OR_RETURN(dense.files, InOrder(files, absl::StrCat(folder, "/", name)));
    dense.parser = [spec = table->spec()](v1::SaveFormat::Kind kind) {
      return DenseParserOf(kind, spec);
    };
  }
  const uint32_t shard_num = store.shard_map().shard_num();
  for (const auto& table : store.sparse_tables()) {
    const std::string name = NumberName(number++);
    const std::string path = absl::StrCat(folder, "/", name);
    LoadPlan::Sparse& sparse = plan.sparse.emplace_back();
    if (!choice.Reads(table->spec().name())) continue;
    CISTERN_ASSIGN_OR_RETURN(const FilesByNumber files, ListTable(disk, folder, name));
    CISTERN_ASSIGN_OR_RETURN(sparse.by_shard, InOrder(files, path));
    CtrFields fields;
    if (options.upgrade) fields = FieldsOfModel(disk, folder, sparse.by_shard, table->spec());
    sparse.parser = ForeignParser(*table, options.upgrade, fields);
    if (sparse.by_shard.size() == shard_num) continue;
    return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                           path, " has ", files.size(), " files, but this fleet has ", shard_num,
                           " shards; start the servers with shard_num=", files.size())),
                       {"cistern-server.shard_num"});
  }
  return plan;
}

}  // namespace cistern::server
