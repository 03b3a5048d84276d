#include "server/saved_model/load_plan.h"

#include <optional>

#include "common/base/check.h"
#include "common/value/pass_days.h"
#include "common/value/schema.h"
#include "common/value/table_choice.h"
#include "server/saved_model/foreign_folder.h"

namespace cistern::server {
namespace {

// The table of `name`, which exists: ChooseTables has checked it.
template <typename Tables>
const typename Tables::value_type& SavedTable(const Tables& tables, const std::string& name) {
  const auto* table = FindTable(tables, name);
  CISTERN_CHECK(table != nullptr);
  return *table;
}

// Creates the tables of `saved`, or checks that its rows match the store's or can be converted to
// them.
absl::StatusOr<TableChoice> TakeSchema(TableStore& store, const ModelPart& saved,
                                       const std::string& folder, const LoadOptions& options) {
  if (saved.shard_num != store.shard_map().shard_num()) {
    return WithOptions(
        absl::FailedPreconditionError(absl::StrCat(
            folder, " was saved with ", saved.shard_num, " shards, but this server has ",
            store.shard_map().shard_num(), "; start the servers with shard_num=", saved.shard_num)),
        {"cistern-server.shard_num"});
  }
  const bool fresh = store.schema_hash() == 0;
  const TableChoice choice = ChooseTables(fresh ? saved.schema : store.schema(), saved.schema,
                                          options.tables, options.upgrade);
  if (!choice.difference.empty()) {
    return OtherTables(choice, absl::FailedPreconditionError(absl::StrCat(
                                   folder, " is a model with other tables: ", choice.difference,
                                   " (here: on this server; there: in the files)")));
  }
  if (fresh) CISTERN_RETURN_IF_ERROR(store.Create(saved.schema));
  return choice;
}

// Every file named here is listed in `parts`: ReadParts has checked it.
LoadPlan PlanOf(const TableStore& store, const std::vector<ModelPart>& parts,
                const TableChoice& choice) {
  const v1::Schema& schema = parts[0].schema;
  LoadPlan plan;
  plan.pass = parts[0].pass;
  if (const uint32_t longest = LongestExpireDays(store.schema()); longest > 0) {
    plan.days = parts[0].days;
    // Leaves out what these tables do not need.
    if (plan.days.days_size() > 0) AddPassDay(plan.pass, /*day=*/0, longest, &plan.days);
  }
  plan.left_out = choice.left_out;
  for (const auto& table : store.sparse_tables()) {
    const std::string& name = table->spec().name();
    LoadPlan::Sparse& sparse = plan.sparse.emplace_back();
    if (!choice.Reads(name)) continue;
    sparse.parser = [saved = SavedTable(schema.tables(), name), to = table->spec()](
                        v1::SaveFormat::Kind kind) { return ParserFor(kind, saved, to); };
    for (ModelFile& file : FilesByShard(name, parts)) sparse.by_shard.push_back({std::move(file)});
  }
  for (const auto& table : store.dense_tables()) {
    const std::string& name = table->spec().name();
    LoadPlan::Dense& dense = plan.dense.emplace_back();
    if (!choice.Reads(name)) continue;
    dense.parser = [saved = SavedTable(schema.dense_tables(), name), to = table->spec()](
                       v1::SaveFormat::Kind kind) { return DenseParserFor(kind, saved, to); };
    const std::vector<std::optional<ModelFile>> files = FilesByServer(name, parts);
    if (!files[0].has_value()) continue;
    for (const std::optional<ModelFile>& file : files) {
      // A writer that owns no row may have no file.
      dense.files.push_back(file.has_value() ? LoadPlan::File{*file} : LoadPlan::File());
    }
  }
  return plan;
}

}  // namespace

absl::StatusOr<LoadPlan> PlanLoad(FileSystem& disk, TableStore& store, const std::string& folder,
                                  const LoadOptions& options) {
  if (options.foreign) return PlanForeignLoad(disk, store, folder, options);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(disk, folder));
  CISTERN_ASSIGN_OR_RETURN(const TableChoice choice, TakeSchema(store, parts[0], folder, options));
  return PlanOf(store, parts, choice);
}

absl::Status ReadRows(FileSystem& disk, const std::string& folder, const LoadPlan::File& file,
                      const std::function<absl::Status(absl::string_view row)>& row) {
  return file.foreign ? ReadForeignFile(disk, folder, file.record.name, row)
                      : ReadModelFile(disk, folder, file.record, row);
}

}  // namespace cistern::server
