#include <memory>

#include "absl/time/clock.h"
#include "app/model/export_source.h"
#include "cli/command/export_commands.h"
#include "cli/command/export_tables.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/value/accessor.h"
#include "worker/client/after_save.h"
#include "worker/export/export_manifest.h"
#include "worker/export/xbox/xbox_model.h"

namespace cistern {
namespace {

struct XboxFlags {
  app::ExportOptions source;
  std::string out;
  std::string kind = "base", form = "cube", compress = "none";
  uint64_t files = 16, day = 0;
  std::vector<std::string> tables;
  bool update = false;
};

SequenceFormat FormatOf(const XboxFlags& flags) {
  SequenceFormat format;
  if (flags.form == "hadoop") format.form = SequenceForm::kHadoop;
  if (flags.compress == "record") format.compression = SequenceCompression::kRecord;
  if (flags.compress == "block") format.compression = SequenceCompression::kBlock;
  return format;
}

absl::Status CheckFlags(const XboxFlags& flags) {
  CISTERN_RETURN_IF_ERROR(app::CheckDay(flags.day));
  if (flags.files > UINT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("--files ", flags.files, ": too many"));
  }
  return WithFix(CheckFormat(FormatOf(flags)), "leave out --compress, or add --seqfile hadoop");
}

// The servers update all their ctr tables, so --update needs all of them to be exported.
absl::Status CheckUpdate(const v1::Schema& schema, const std::vector<TableId>& tables) {
  bool any = false;
  for (TableId id = 0; id < static_cast<TableId>(schema.tables_size()); ++id) {
    const v1::TableSpec& spec = schema.tables(static_cast<int>(id));
    if (!HasStatistics(spec)) continue;
    any = true;
    if (std::find(tables.begin(), tables.end(), id) != tables.end()) continue;
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       "--update resets the statistics of all tables with the accessor ctr, but "
                       "--tables leaves out '",
                       spec.name(), "': its changes would be missing in the next delta")),
                   "export all of them, or leave out --update");
  }
  if (any) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     "--update: the model has no table with the accessor ctr, so there are no "
                     "statistics to reset"),
                 "leave out --update");
}

Report ReportOf(const XboxFlags& flags, const CommittedVersion& version, const XboxWritten& written,
                double seconds) {
  Report report;
  report.json["kind"] = flags.kind;
  report.json["id"] = written.id;
  report.json["commit"] = version.commit;
  report.json["pass"] = version.pass;
  uint64_t rows = 0, bytes = 0;
  for (const XboxWritten::Table& table : written.tables) {
    rows += table.rows;
    bytes += table.bytes;
    report.json["tables"].push_back({{"name", table.name},
                                     {"path", table.folder},
                                     {"rows", table.rows},
                                     {"bytes", table.bytes},
                                     {"limited", table.limited},
                                     {"digest", HashText(table.digest)}});
    absl::StrAppend(&report.text, table.name, "  ", table.rows, " rows  ", table.folder, "\n");
    if (table.limited == 0) continue;
    absl::StrAppend(&report.text, "note: ", table.limited,
                    " numbers of this table are beyond the range of their fields and were limited "
                    "to it\n");
  }
  report.json["rows"] = rows;
  report.json["bytes"] = bytes;
  report.json["seconds"] = seconds;
  report.json["updated"] = flags.update;
  absl::StrAppend(&report.text, "exported ", rows, " rows, ", BytesText(bytes), " in ",
                  DurationText(seconds), "\n",
                  flags.update ? "the statistics of the exported rows were reset\n"
                               : "no statistics were changed (see --update)\n");
  return report;
}

absl::StatusOr<Report> RunExportXbox(const XboxFlags& flags, const Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckFlags(flags));
  CISTERN_ASSIGN_OR_RETURN(app::ExportSource source,
                           app::OpenExportSource(flags.source, flags.update));
  const v1::Schema& schema = source.model->schema();
  XboxOptions options;
  CISTERN_ASSIGN_OR_RETURN(
      options.tables, TablesOf(schema, flags.tables, [](const v1::TableSpec&) { return true; }));
  const absl::Time start = absl::Now();
  if (flags.update) {
    CISTERN_RETURN_IF_ERROR(CheckUpdate(schema, options.tables));
    // No other writer may commit between the export and the reset of its rows.
    ParameterClient& client = source.fleet->client();
    CISTERN_RETURN_IF_ERROR(app::WithFleetFix(client.ClaimTerm(), flags.source.model.fleet));
    source.model = CommittedModelOf(client, source.model->name());
  }
  options.folder = app::FolderOf(flags.out);
  options.named = console.Shown(options.folder);
  options.mode = flags.kind == "delta" ? v1::DELTA : v1::BASE;
  options.format = FormatOf(flags);
  options.files = static_cast<uint32_t>(flags.files);
  options.day = static_cast<uint32_t>(flags.day);
  options.now = static_cast<uint64_t>(absl::ToUnixSeconds(start));
  LocalFileSystem files;
  const auto written = WriteXbox(files, *source.model, options);
  if (!written.ok()) return app::WithFleetFix(written.status(), flags.source.model.fleet);
  const CommittedVersion version = source.model->version();
  if (flags.update) {
    const absl::Status updated =
        AddContext(UpdateAfterSave(source.fleet->client(), options.mode, options.day),
                   absl::StrCat("version ", written->id,
                                " is exported, but the statistics of its "
                                "rows were not reset; the next export "
                                "repeats these rows"));
    CISTERN_RETURN_IF_ERROR(app::WithFleetFix(updated, flags.source.model.fleet));
  }
  return ReportOf(flags, version, *written, absl::ToDoubleSeconds(absl::Now() - start));
}

}  // namespace

void AddExportXbox(Command& all) {
  auto flags = std::make_shared<XboxFlags>();
  Command& command =
      all.Add("xbox", "Writes rows as SequenceFiles for Paddle Serving's Cube: a base, or a delta.",
              "cistern export xbox ctr.json --servers 127.0.0.1:7700 --out xbox --update");
  AddExportFlags(command, &flags->source);
  AddTakeOverFlag(command, &flags->source.model.fleet);
  command.Flag("--out", &flags->out,
               {"DIR", "Folder of the dictionary; with several tables, it has a folder per table.",
                "--out xbox", kRequired});
  command.Choice("--kind", &flags->kind,
                 {"base|delta",
                  "base: every row with a sufficient score; delta: of these, those that changed "
                  "since they were last exported.",
                  "--kind delta"});
  command.Choice("--seqfile", &flags->form,
                 {"cube|hadoop",
                  "cube: records as Paddle Serving's cube-builder reads them; hadoop: as Hadoop's "
                  "own reader does.",
                  "--seqfile hadoop"});
  command.Choice(
      "--compress", &flags->compress,
      {"none|record|block", "With --seqfile hadoop: compresses with zlib.", "--compress block"});
  command.Flag(
      "--files", &flags->files,
      {"INT", "Number of files of a table; key % INT tells the file of a row.", "--files 64"});
  AddTablesFlag(command, &flags->tables);
  command.Switch("--update", &flags->update,
                 {"",
                  "With --servers: becomes the fleet's writer, and afterwards resets the "
                  "statistics of the exported rows, so that the next delta begins here.",
                  "--update"});
  AddDayFlag(command, &flags->day);
  command.Does([flags](Console& console) { return RunExportXbox(*flags, console); });
}

}  // namespace cistern
