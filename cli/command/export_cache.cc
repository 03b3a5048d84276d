#include <memory>

#include "absl/time/clock.h"
#include "app/model/export_source.h"
#include "cli/command/export_commands.h"
#include "cli/command/export_tables.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/value/accessor.h"
#include "worker/export/cache/feature_cache.h"

namespace cistern {
namespace {

struct CacheFlags {
  app::ExportOptions source;
  std::string out, form = "cube";
  double rate = 0.00055;
  bool memory_cache = false;
  uint64_t files = 16, seed = 0, day = 0;
  std::vector<std::string> tables;
};

Report ReportOf(const CacheWritten& written, const CommittedVersion& version, double seconds) {
  Report report;
  report.json["commit"] = version.commit;
  report.json["pass"] = version.pass;
  uint64_t rows = 0, bytes = 0;
  for (const CacheWritten::Table& table : written.tables) {
    rows += table.rows;
    bytes += table.bytes;
    report.json["tables"].push_back({{"name", table.name},
                                     {"path", table.folder},
                                     {"threshold", table.threshold},
                                     {"rows", table.rows},
                                     {"of_rows", table.of_rows},
                                     {"bytes", table.bytes},
                                     {"limited", table.limited}});
    absl::StrAppend(&report.text, table.name, "  ", table.rows, " of ", table.of_rows,
                    " rows, shown ", table.threshold, " times or more  ", table.folder, "\n");
  }
  report.json["rows"] = rows;
  report.json["bytes"] = bytes;
  report.json["seconds"] = seconds;
  absl::StrAppend(&report.text, "exported ", rows, " rows, ", BytesText(bytes), " in ",
                  DurationText(seconds), "\n");
  return report;
}

absl::StatusOr<Report> RunExportCache(const CacheFlags& flags) {
  CISTERN_RETURN_IF_ERROR(app::CheckDay(flags.day));
  if (flags.files > UINT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("--files ", flags.files, ": too many"));
  }
  CISTERN_ASSIGN_OR_RETURN(const app::ExportSource source,
                           app::OpenExportSource(flags.source, flags.memory_cache));
  const absl::Time start = absl::Now();
  CacheOptions options;
  CISTERN_ASSIGN_OR_RETURN(options.tables,
                           TablesOf(source.model->schema(), flags.tables, HasStatistics));
  options.folder = app::FolderOf(flags.out);
  options.rate = flags.rate;
  options.from_servers = flags.memory_cache;
  options.files = static_cast<uint32_t>(flags.files);
  options.seed = flags.seed;
  options.day = static_cast<uint32_t>(flags.day);
  if (flags.form == "hadoop") options.format.form = SequenceForm::kHadoop;
  if (source.fleet != nullptr) {
    options.server_num = static_cast<uint32_t>(source.fleet->client().servers().size());
  }
  LocalFileSystem files;
  const auto written = WriteFeatureCache(files, *source.model, options);
  if (!written.ok()) return app::WithFleetFix(written.status(), flags.source.model.fleet);
  return ReportOf(*written, source.model->version(), absl::ToDoubleSeconds(absl::Now() - start));
}

}  // namespace

void AddExportCache(Command& all) {
  auto flags = std::make_shared<CacheFlags>();
  Command& command = all.Add("cache", "Writes the rows that were shown most, for a memory cache.",
                             "cistern export cache ctr.json --model runs/ctr --out cache");
  AddExportFlags(command, &flags->source);
  command.Flag("--out", &flags->out,
               {"DIR", "Folder of the caches; those of an earlier export are replaced.",
                "--out cache", kRequired});
  command.Flag("--rate", &flags->rate,
               {"NUMBER", "The share of the rows to cache, about.", "--rate 0.01"});
  command.Switch(
      "--memory-cache", &flags->memory_cache,
      {"",
       "With --servers: the rows in the memory caches of the servers, which were started "
       "with --cache_rate, instead of a scan with --rate.",
       "--memory-cache"});
  command.Flag("--files", &flags->files, {"INT", "Number of files of a table.", "--files 4"});
  command.Flag("--seed", &flags->seed, {"INT", "Seed of the shuffle over the files.", "--seed 7"});
  command.Choice(
      "--seqfile", &flags->form,
      {"cube|hadoop", "The form of the SequenceFiles, as for xbox.", "--seqfile hadoop"});
  AddTablesFlag(command, &flags->tables);
  AddDayFlag(command, &flags->day);
  command.Does([flags](Console&) { return RunExportCache(*flags); });
}

}  // namespace cistern
