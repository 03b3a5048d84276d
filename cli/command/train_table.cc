#include "cli/command/train_table.h"

#include "absl/strings/match.h"
#include "cli/terminal/exit_code.h"

namespace cistern {
namespace {

// Tables have any name where a flag says that the file is one.
bool IsModelFile(const std::string& path) {
  const absl::StatusOr<TableLayout> layout = FindLayout(path);
  return absl::EndsWith(path, ".json") || !layout.ok();
}

}  // namespace

absl::Status TakeTable(const app::WorkerRank& worker, const app::RunFolder& run, Console& console,
                       TrainFlags* flags) {
  const std::string table = flags->model.config;
  TableModelFlags given = flags->table;
  if (!flags->more.empty()) {  // of the new data (more_data.h)
    given.valid = given.test = "";
    given.negative_rate = 0;
  }
  const std::string flag = GivenTableFlag(given);
  if (!IsTable(table) && (flag.empty() || IsModelFile(table))) {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(table));
    if (flag.empty() || !exists) return absl::OkStatus();
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       flag, " is for a table (*.csv, *.tsv), but ", table, " is a model file")),
                   absl::StrCat("leave out ", flag));
  }
  const auto refuse = [](const std::string& what, const std::string& fix) {
    return WithFix(absl::InvalidArgumentError(what), fix);
  };
  if (flags->resume || !flags->more.empty()) {
    return refuse(absl::StrCat(table, " is a table, not a run to resume"),
                  absl::StrCat("cistern train ", flags->out.empty() ? "RUN" : flags->out,
                               " --resume", " continues a run; --more adds data to it"));
  }
  if (flags->dry_run) {
    return refuse(absl::StrCat("--dry-run: ", table, " is a table, not a model file"),
                  absl::StrCat("cistern init ", table, " writes the model file"));
  }
  if (flags->out.empty()) return refuse("--out is required", "name a folder for the run");
  if (worker.world_size > 1) {
    return refuse(absl::StrCat(table, ": a table cannot be converted by several workers"),
                  absl::StrCat("cistern init ", table, ", then convert the data once"));
  }
  CISTERN_RETURN_IF_ERROR(app::PrepareRunFolder(run));
  CISTERN_ASSIGN_OR_RETURN(flags->model.config,
                           MakeModel(table, flags->table, flags->out, console, &flags->warnings));
  return absl::OkStatus();
}

}  // namespace cistern
