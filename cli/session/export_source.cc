#include "cli/session/export_source.h"

#include <filesystem>
#include <optional>

#include "cli/session/held_model.h"
#include "cli/session/saved_place.h"
#include "cli/session/saved_rows.h"
#include "cli/terminal/exit_code.h"
#include "common/base/log.h"
#include "common/value/schema.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

absl::Status CheckSources(const ExportFlags& flags, bool needs_fleet) {
  const int sources = (flags.model_dir.empty() ? 0 : 1) + (flags.state.empty() ? 0 : 1) +
                      (flags.model.fleet.servers.empty() ? 0 : 1);
  if (needs_fleet && flags.model.fleet.servers.empty()) {
    return WithFix(
        absl::InvalidArgumentError("this export needs the servers, not only their files"),
        "add --servers host:port,...");
  }
  if (sources == 1) return absl::OkStatus();
  return WithFix(
      absl::InvalidArgumentError(sources == 0 ? "no trained model was named"
                                              : "more than one trained model was named"),
      "name one: --model DIR (the --out folder of a training run), --state DATA_DIR[@COMMIT], or "
      "--servers host:port,...");
}

absl::StatusOr<std::unique_ptr<CommittedModel>> FromFiles(const RowsPlace& place,
                                                          uint64_t threads) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SavedRows> rows, SavedRows::Open(files, place));
  ThreadPool pool(ThreadsOf(threads));
  return ReadCommittedModel(*rows, pool);
}

// The commit that a durable fleet is at, if this machine can read its files.
std::optional<RowsPlace> StateOf(FleetSession& fleet) {
  LocalFileSystem files;
  return LocalCommitOf(files, fleet.client());
}

// Why the export names no commit.
std::string NoCommitText(const CommittedModel& model, const ExportFlags& flags) {
  return absl::StrCat(
      model.name(), " names no commit, so the export carries only its pass, ", model.version().pass,
      flags.model_dir.empty() ? ": the servers keep this state in memory only"
                              : ": it was saved without commits on disk, by an older program, or "
                                "not with all digits of "
                                "all rows, or it was copied without the .commit.json beside it");
}

}  // namespace

absl::Status CheckModelFile(const ModelConfig& config, const CommittedModel& model) {
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema schema, SchemaOf(config));
  const std::string difference = SchemaDifference(schema, model.schema());
  if (difference.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(absl::StrCat(config.path, " does not describe ",
                                                         model.name(), ": ", difference)),
                 "use the model file and the --set flags of its training");
}

absl::Status TakeRunModel(ExportFlags* flags) {
  std::string model_dir = flags->model_dir;
  CISTERN_RETURN_IF_ERROR(TakeRunFolder(&flags->model, &model_dir));
  if (flags->state.empty()) flags->model_dir = model_dir;
  return absl::OkStatus();
}

void AddExportFlags(Command& command, ExportFlags* flags) {
  AddModelFileFlags(command, &flags->model);
  command.Flag(
      "--model", &flags->model_dir,
      {"DIR", "The trained model: the --out folder of a training run, or the model folder in it.",
       "--model runs/deepfm"});
  command.Flag("--state", &flags->state,
               {"DIR[@COMMIT]",
                "The data_dir of servers, or the --out folder of a training run with --durability "
                "commit: its newest commit, or the given one.",
                "--state fleet/data@12"});
  AddFleetFlags(command, &flags->model.fleet, true);
  command.Flag("--threads", &flags->model.threads,
               {"INT", "Number of threads that read; 0: one per core.", "--threads 4"});
}

absl::StatusOr<ExportSource> OpenExportSource(const ExportFlags& given, bool needs_fleet) {
  ExportFlags flags = given;
  CISTERN_RETURN_IF_ERROR(TakeRunModel(&flags));
  CISTERN_RETURN_IF_ERROR(CheckSources(flags, needs_fleet));
  ExportSource source;
  CISTERN_ASSIGN_OR_RETURN(source.config, ReadModelConfig(flags.model));
  std::optional<RowsPlace> place;
  if (!flags.model_dir.empty()) {
    CISTERN_ASSIGN_OR_RETURN(std::string folder, FindModelFolder(flags.model_dir));
    place = RowsPlace{std::move(folder)};
  } else if (!flags.state.empty()) {
    place = ParseRowsPlace(flags.state);
  } else {
    CISTERN_ASSIGN_OR_RETURN(source.fleet, FleetSession::Open(flags.model.fleet));
    CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(source.fleet->client()));
    if (rows == 0 && source.fleet->client().committed_pass() == 0) {
      return WithFix(absl::InvalidArgumentError(
                         absl::StrCat("the servers ", flags.model.fleet.servers, " hold no model")),
                     "train one, or load one with cistern load --servers ... --name NAME");
    }
    if (!needs_fleet) place = StateOf(*source.fleet);
  }
  if (!place) {
    source.model = CommittedModelOf(source.fleet->client(),
                                    absl::StrCat("servers ", flags.model.fleet.servers));
  } else {
    CISTERN_ASSIGN_OR_RETURN(source.model, FromFiles(*place, flags.model.threads));
  }
  CISTERN_RETURN_IF_ERROR(CheckModelFile(source.config, *source.model));
  if (source.model->version().commit == 0) LogWarning(NoCommitText(*source.model, flags));
  return source;
}

std::string FolderOf(const std::string& out) {
  std::error_code error;  // without a current folder the path stays relative
  std::string folder = std::filesystem::absolute(out, error).lexically_normal();
  if (error) folder = out;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

}  // namespace cistern
