#include "app/export/export_xbox.h"

#include <memory>

#include "cli/command/export_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

struct XboxFlags {
  app::XboxExport options;
  std::string kind = "base", form = "cube", compress = "none";
};

app::XboxExport XboxExportOf(const XboxFlags& flags, const Console& console) {
  app::XboxExport options = flags.options;
  options.named = console.Shown(app::FolderOf(options.out));
  if (flags.kind == "delta") options.kind = v1::DELTA;
  if (flags.form == "hadoop") options.format.form = SequenceForm::kHadoop;
  if (flags.compress == "record") options.format.compression = SequenceCompression::kRecord;
  if (flags.compress == "block") options.format.compression = SequenceCompression::kBlock;
  return options;
}

std::string TextOf(const app::XboxExported& exported) {
  std::string text;
  uint64_t rows = 0, bytes = 0;
  for (const auto& table : exported.written.tables) {
    rows += table.rows;
    bytes += table.bytes;
    absl::StrAppend(&text, table.name, "  ", table.rows, " rows  ", table.folder, "\n");
    if (table.limited == 0) continue;
    absl::StrAppend(&text, "note: ", table.limited,
                    " numbers of this table are beyond the range of their fields and were limited "
                    "to it\n");
  }
  absl::StrAppend(&text, "exported ", rows, " rows, ", BytesText(bytes), " in ",
                  DurationText(exported.seconds), "\n",
                  exported.updated ? "the statistics of the exported rows were reset\n"
                                   : "no statistics were changed (see --update)\n");
  return text;
}

}  // namespace

void AddExportXbox(Command& all) {
  auto flags = std::make_shared<XboxFlags>();
  Command& command =
      all.Add("xbox", "Writes rows as SequenceFiles for Paddle Serving's Cube: a base, or a delta.",
              "cistern export xbox ctr.json --servers 127.0.0.1:7700 --out xbox --update");
  AddExportFlags(command, &flags->options.source);
  AddTakeOverFlag(command, &flags->options.source.model.fleet);
  command.Flag("--out", &flags->options.out,
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
      "--files", &flags->options.files,
      {"INT", "Number of files of a table; key % INT tells the file of a row.", "--files 64"});
  AddTablesFlag(command, &flags->options.tables);
  command.Switch("--update", &flags->options.update,
                 {"",
                  "With --servers: becomes the fleet's writer, and afterwards resets the "
                  "statistics of the exported rows, so that the next delta begins here.",
                  "--update"});
  AddDayFlag(command, &flags->options.day);
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(
        const app::XboxExported exported,
        app::ExportXbox(XboxExportOf(*flags, console), JobConsole(console).calls()));
    return Report{app::JsonOf(exported), TextOf(exported), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
