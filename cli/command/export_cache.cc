#include "app/export/export_cache.h"

#include <memory>

#include "cli/command/export_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

struct CacheFlags {
  app::CacheExport options;
  std::string form = "cube";
};

std::string TextOf(const app::CacheExported& exported) {
  std::string text;
  uint64_t rows = 0, bytes = 0;
  for (const auto& table : exported.written.tables) {
    rows += table.rows;
    bytes += table.bytes;
    absl::StrAppend(&text, table.name, "  ", table.rows, " of ", table.of_rows, " rows, shown ",
                    table.threshold, " times or more  ", table.folder, "\n");
  }
  absl::StrAppend(&text, "exported ", rows, " rows, ", BytesText(bytes), " in ",
                  DurationText(exported.seconds), "\n");
  return text;
}

}  // namespace

void AddExportCache(Command& all) {
  auto flags = std::make_shared<CacheFlags>();
  Command& command = all.Add("cache", "Writes the rows that were shown most, for a memory cache.",
                             "cistern export cache ctr.json --model runs/ctr --out cache");
  AddExportFlags(command, &flags->options.source);
  command.Flag("--out", &flags->options.out,
               {"DIR", "Folder of the caches; those of an earlier export are replaced.",
                "--out cache", kRequired});
  command.Flag("--rate", &flags->options.rate,
               {"NUMBER", "The share of the rows to cache, about.", "--rate 0.01"});
  command.Switch(
      "--memory-cache", &flags->options.memory_cache,
      {"",
       "With --servers: the rows in the memory caches of the servers, which were started "
       "with --cache_rate, instead of a scan with --rate.",
       "--memory-cache"});
  command.Flag("--files", &flags->options.files,
               {"INT", "Number of files of a table.", "--files 4"});
  command.Flag("--seed", &flags->options.seed,
               {"INT", "Seed of the shuffle over the files.", "--seed 7"});
  command.Choice(
      "--seqfile", &flags->form,
      {"cube|hadoop", "The form of the SequenceFiles, as for xbox.", "--seqfile hadoop"});
  AddTablesFlag(command, &flags->options.tables);
  AddDayFlag(command, &flags->options.day);
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    if (flags->form == "hadoop") flags->options.form = SequenceForm::kHadoop;
    CISTERN_ASSIGN_OR_RETURN(const app::CacheExported exported,
                             app::ExportCache(flags->options, JobConsole(console).calls()));
    return Report{app::JsonOf(exported), TextOf(exported), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
