#include "server/snapshot/load_plan.h"

#include <map>

#include "common/check.h"
#include "common/schema.h"
#include "server/snapshot/foreign_folder.h"

namespace cistern {
namespace {

constexpr char kUpgradeCure[] = "; to convert its rows, load with upgrade (cistern load --upgrade)";

absl::Status OtherTables(const std::string& folder, const std::string& difference,
                         const char* cure) {
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " is a model of other tables: ", difference,
                   " (here: on this server; there: in the files)", cure));
}

// The table of `name`, which is there: TakeSchema saw to it.
template <typename Tables>
const typename Tables::value_type& TableOf(const Tables& tables, const std::string& name) {
  const auto* table = FindTable(tables, name);
  CISTERN_CHECK(table != nullptr);
  return *table;
}

// Makes the tables of `saved`, or checks that its rows are, or can become, those of the store.
absl::Status TakeSchema(TableStore& store, const ModelPart& saved, const std::string& folder,
                        bool upgrade) {
  if (saved.shard_num != store.shard_map().shard_num()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, " was saved with ", saved.shard_num, " shards and this server has ",
        store.shard_map().shard_num(), "; start the servers with --shard_num=", saved.shard_num));
  }
  if (store.schema_hash() == 0) return store.Create(saved.schema);
  if (store.schema_hash() == SchemaHash(saved.schema)) return absl::OkStatus();
  if (!upgrade) {
    return OtherTables(folder, SchemaDifference(store.schema(), saved.schema), kUpgradeCure);
  }
  const std::string difference = UpgradeDifference(store.schema(), saved.schema);
  return difference.empty() ? absl::OkStatus() : OtherTables(folder, difference, "");
}

LoadPlan::Sparse PlanSparse(const SparseTable& table, const v1::TableSpec& saved) {
  LoadPlan::Sparse plan;
  const ValueLayout to = table.layout();
  if (saved.SerializeAsString() == table.spec().SerializeAsString()) {
    plan.parser = [to](v1::SaveFormat::Kind kind) { return ParserOf(kind, to); };
  } else {
    plan.parser = [to, saved](v1::SaveFormat::Kind kind) -> absl::StatusOr<RowParser> {
      CISTERN_ASSIGN_OR_RETURN(const ValueLayout from, ValueLayout::Create(saved));
      return UpgradingParser(kind, from, to);
    };
  }
  return plan;
}

LoadPlan::Dense PlanDense(const v1::DenseTableSpec& table, const v1::DenseTableSpec& saved) {
  LoadPlan::Dense plan;
  plan.parser = [table, saved](v1::SaveFormat::Kind kind) {
    return saved.SerializeAsString() == table.SerializeAsString()
               ? DenseParserOf(kind, table)
               : UpgradingDenseParser(kind, saved, table);
  };
  return plan;
}

// Every file that is named here is listed in `parts`: ReadParts saw to it.
LoadPlan PlanOf(const TableStore& store, const std::vector<ModelPart>& parts) {
  const v1::Schema& schema = parts[0].schema;
  const v1::SaveFormat& format = parts[0].format;
  const uint32_t writer_num = parts[0].server_num;
  std::map<std::string, ModelFile> listed;
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) listed.emplace(file.name, file);
  }
  LoadPlan plan;
  plan.pass = parts[0].pass;
  for (const auto& table : store.sparse_tables()) {
    const std::string& name = table->spec().name();
    LoadPlan::Sparse& sparse =
        plan.sparse.emplace_back(PlanSparse(*table, TableOf(schema.tables(), name)));
    for (ShardIndex shard = 0; shard < store.shard_map().shard_num(); ++shard) {
      sparse.by_shard.push_back(
          {listed.at(SparsePartName(name, shard % writer_num, shard, format))});
    }
  }
  for (const auto& table : store.dense_tables()) {
    const std::string& name = table->spec().name();
    LoadPlan::Dense& dense =
        plan.dense.emplace_back(PlanDense(table->spec(), TableOf(schema.dense_tables(), name)));
    if (listed.count(DensePartName(name, 0, format)) == 0) continue;
    for (uint32_t writer = 0; writer < writer_num; ++writer) {
      const auto file = listed.find(DensePartName(name, writer, format));
      // A writer that owns no row may have no file.
      dense.files.push_back(file == listed.end() ? LoadPlan::File() : LoadPlan::File{file->second});
    }
  }
  return plan;
}

}  // namespace

absl::StatusOr<LoadPlan> PlanLoad(FileSystem& disk, TableStore& store, const std::string& folder,
                                  const LoadOptions& options) {
  if (options.foreign) return PlanForeignLoad(disk, store, folder, options.upgrade);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(disk, folder));
  CISTERN_RETURN_IF_ERROR(TakeSchema(store, parts[0], folder, options.upgrade));
  return PlanOf(store, parts);
}

absl::Status ReadRows(FileSystem& disk, const std::string& folder, const LoadPlan::File& file,
                      const std::function<absl::Status(absl::string_view row)>& row) {
  return file.foreign ? ReadForeignFile(disk, folder, file.record.name, row)
                      : ReadModelFile(disk, folder, file.record, row);
}

}  // namespace cistern
