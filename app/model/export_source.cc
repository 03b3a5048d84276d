#include "app/model/export_source.h"

#include <filesystem>
#include <optional>

#include "app/fleet/held_model.h"
#include "app/model/stoppable_model.h"
#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "common/base/log.h"
#include "common/value/schema.h"
#include "worker/train/jobs.h"

namespace cistern::app {
namespace {

absl::Status CheckSources(const ExportOptions& options, bool needs_fleet) {
  const int sources = (options.model_dir.empty() ? 0 : 1) + (options.state.empty() ? 0 : 1) +
                      (options.model.fleet.servers.empty() ? 0 : 1);
  if (needs_fleet && options.model.fleet.servers.empty()) {
    return WithOptions(
        absl::InvalidArgumentError("this export needs the servers, not only their files"),
        {"servers"});
  }
  if (sources == 1) return absl::OkStatus();
  return WithFix(WithOptions(absl::InvalidArgumentError(
                                 sources == 0 ? "no trained model was named"
                                              : "more than one trained model was named"),
                             {"model", "state", "servers"}),
                 "name one: the folder of a training run, a state (DATA_DIR[@COMMIT]), or servers");
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
std::string NoCommitText(const CommittedModel& model, const ExportOptions& options) {
  return absl::StrCat(
      model.name(), " names no commit, so the export carries only its pass, ", model.version().pass,
      options.model_dir.empty() ? ": the servers keep this state in memory only"
                                : ": it was saved without commits on disk, by an older program, or "
                                  "not with all digits of "
                                  "all rows, or it was copied without the .commit.json beside it");
}

}  // namespace

absl::Status CheckModelFile(const model::ModelConfig& config, const CommittedModel& model) {
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema schema, SchemaOf(config));
  const std::string difference = SchemaDifference(schema, model.schema());
  if (difference.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(absl::StrCat(config.path, " does not describe ",
                                                         model.name(), ": ", difference)),
                 "use the model file and the overrides of its training");
}

absl::Status ResolveRunModel(ExportOptions* options) {
  std::string model_dir = options->model_dir;
  CISTERN_RETURN_IF_ERROR(ResolveRunFolder(&options->model, &model_dir));
  if (options->state.empty()) options->model_dir = model_dir;
  return absl::OkStatus();
}

absl::StatusOr<ExportSource> OpenExportSource(const ExportOptions& given, bool needs_fleet,
                                              const std::atomic<bool>* stop) {
  ExportOptions options = given;
  CISTERN_RETURN_IF_ERROR(ResolveRunModel(&options));
  CISTERN_RETURN_IF_ERROR(CheckSources(options, needs_fleet));
  ExportSource source;
  CISTERN_ASSIGN_OR_RETURN(source.config, ReadModelConfig(options.model));
  std::optional<RowsPlace> place;
  if (!options.model_dir.empty()) {
    CISTERN_ASSIGN_OR_RETURN(std::string folder, FindModelFolder(options.model_dir));
    place = RowsPlace{std::move(folder)};
  } else if (!options.state.empty()) {
    place = ParseRowsPlace(options.state);
  } else {
    CISTERN_ASSIGN_OR_RETURN(source.fleet, FleetSession::Open(options.model.fleet));
    CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(source.fleet->client()));
    if (rows == 0 && source.fleet->client().committed_pass() == 0) {
      return WithFix(
          WithOptions(absl::InvalidArgumentError(absl::StrCat(
                          "the servers ", options.model.fleet.servers, " hold no model")),
                      {"load.name"}),
          "train one, or load a saved one");
    }
    if (!needs_fleet) place = StateOf(*source.fleet);
  }
  if (!place) {
    source.model = CommittedModelOf(source.fleet->client(),
                                    absl::StrCat("servers ", options.model.fleet.servers));
  } else {
    CISTERN_ASSIGN_OR_RETURN(source.model, FromFiles(*place, options.model.threads));
  }
  source.model = Stoppable(std::move(source.model), stop);
  CISTERN_RETURN_IF_ERROR(CheckModelFile(source.config, *source.model));
  if (source.model->version().commit == 0) LogWarning(NoCommitText(*source.model, options));
  return source;
}

absl::Status RefuseKeyWeights(const model::ModelConfig& config, const std::string& reader) {
  if (config.cistern.key_weights.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(config.path, ": the keys of input '", config.cistern.key_weights.front(),
                   "' have weights (cistern.key_weights), which ", reader,
                   " would leave out; serve the model, or export it for ONNX"));
}

std::string FolderOf(const std::string& out) {
  std::error_code error;  // without a current folder the path stays relative
  std::string folder = std::filesystem::absolute(out, error).lexically_normal();
  if (error) folder = out;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

}  // namespace cistern::app
