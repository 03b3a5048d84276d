#include "app/export/export_xbox.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "app/export/export_tables.h"
#include "app/model/stoppable_model.h"
#include "common/value/accessor.h"
#include "worker/client/after_save.h"
#include "worker/export/export_manifest.h"

namespace cistern::app {
namespace {

// The servers update all their ctr tables, so an update needs all of them to be exported.
absl::Status CheckUpdate(const v1::Schema& schema, const std::vector<TableId>& tables) {
  bool any = false;
  for (TableId id = 0; id < static_cast<TableId>(schema.tables_size()); ++id) {
    const v1::TableSpec& spec = schema.tables(static_cast<int>(id));
    if (!HasStatistics(spec)) continue;
    any = true;
    if (std::find(tables.begin(), tables.end(), id) != tables.end()) continue;
    return WithFix(
        WithOptions(
            absl::InvalidArgumentError(absl::StrCat(
                "an update resets the statistics of all tables with the accessor ctr, but "
                "'",
                spec.name(), "' is left out: its changes would be missing in the next delta")),
            {"update", "tables"}),
        "export all of them, or do not update");
  }
  if (any) return absl::OkStatus();
  return WithFix(WithOptions(absl::InvalidArgumentError(
                                 "the model has no table with the accessor ctr, so there are no "
                                 "statistics to reset"),
                             {"update"}),
                 "do not update");
}

}  // namespace

absl::StatusOr<XboxExported> ExportXbox(const XboxExport& options, const JobCalls& calls) {
  XboxOptions xbox;
  CISTERN_RETURN_IF_ERROR(CheckDay(options.day));
  CISTERN_ASSIGN_OR_RETURN(xbox.files, FileCount(options.files));
  CISTERN_RETURN_IF_ERROR(
      WithFix(WithOptions(CheckFormat(options.format), {"compress", "seqfile=hadoop"}),
              "do not compress, or write for Hadoop's own reader"));
  CISTERN_ASSIGN_OR_RETURN(ExportSource source,
                           OpenExportSource(options.source, options.update, calls.stop));
  const v1::Schema& schema = source.model->schema();
  CISTERN_ASSIGN_OR_RETURN(
      xbox.tables, TablesOf(schema, options.tables, [](const v1::TableSpec&) { return true; }));
  const absl::Time start = absl::Now();
  const FleetOptions& fleet = options.source.model.fleet;
  if (options.update) {
    CISTERN_RETURN_IF_ERROR(CheckUpdate(schema, xbox.tables));
    // No other writer may commit between the export and the reset of its rows.
    ParameterClient& client = source.fleet->client();
    CISTERN_RETURN_IF_ERROR(WithFleetFix(client.ClaimTerm(), fleet));
    source.model = Stoppable(CommittedModelOf(client, source.model->name()), calls.stop);
  }
  xbox.folder = FolderOf(options.out);
  xbox.named = options.named;
  xbox.mode = options.kind;
  xbox.format = options.format;
  xbox.day = static_cast<uint32_t>(options.day);
  xbox.now = static_cast<uint64_t>(absl::ToUnixSeconds(start));
  LocalFileSystem files;
  absl::StatusOr<XboxWritten> written = WriteXbox(files, *source.model, xbox);
  if (!written.ok()) return WithFleetFix(written.status(), fleet);
  const CommittedVersion version = source.model->version();
  if (options.update) {
    const absl::Status updated =
        AddContext(UpdateAfterSave(source.fleet->client(), xbox.mode, xbox.day),
                   absl::StrCat("version ", written->id,
                                " is exported, but the statistics of its "
                                "rows were not reset; the next export "
                                "repeats these rows"));
    CISTERN_RETURN_IF_ERROR(WithFleetFix(updated, fleet));
  }
  return XboxExported{options.kind, options.update, *std::move(written), version,
                      absl::ToDoubleSeconds(absl::Now() - start)};
}

nlohmann::ordered_json JsonOf(const XboxExported& exported) {
  nlohmann::ordered_json json;
  json["kind"] = exported.kind == v1::DELTA ? "delta" : "base";
  json["id"] = exported.written.id;
  json["commit"] = exported.version.commit;
  json["pass"] = exported.version.pass;
  uint64_t rows = 0, bytes = 0;
  for (const XboxWritten::Table& table : exported.written.tables) {
    rows += table.rows;
    bytes += table.bytes;
    json["tables"].push_back({{"name", table.name},
                              {"path", table.folder},
                              {"rows", table.rows},
                              {"bytes", table.bytes},
                              {"limited", table.limited},
                              {"digest", HashText(table.digest)}});
  }
  json["rows"] = rows;
  json["bytes"] = bytes;
  json["seconds"] = exported.seconds;
  json["updated"] = exported.updated;
  return json;
}

}  // namespace cistern::app
