#include "app/model/model_source.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "app/run/run_folder.h"
#include "common/base/thread_limit.h"
#include "common/saved_model/model_folder.h"
#include "cuda/core/device.h"
#include "worker/model/config/trained_constants.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

bool HoldsModel(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "part-") && absl::EndsWith(name, ".json")) return true;
  }
  return false;
}

// What to name in place of a folder that is not that of a run.
std::string FixOfFolder(const std::string& folder) {
  const auto holds = [&](const char* name) {
    std::error_code error;
    return std::filesystem::is_regular_file(absl::StrCat(folder, "/", name), error);
  };
  if (holds(kRunModelFile)) {
    return absl::StrCat("it holds a model file that was not trained there: name ", folder, "/",
                        kRunModelFile, ", or the folder of its run");
  }
  if (holds("file_list.txt")) {
    return "it holds a data set: name a model file, whose Data layer reads it, or the folder of a "
           "run";
  }
  if (HoldsModel(folder)) return "name the model file, and the folder as the model";
  std::error_code error;
  return absl::StrCat(std::filesystem::is_empty(folder, error) ? "it is empty: " : "",
                      "name the folder of a run, a model file, or a table to train on");
}

absl::Status LoadInto(FleetSession& fleet, model::ModelConfig* config,
                      const std::string& model_dir) {
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(model_dir));
  LocalFileSystem files;
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
  if (parts.ok() && !parts->empty()) model::TakeTrainedConstants(parts->front().schema, config);
  const absl::Status loaded =
      WithKind(LoadModel(files, *config, fleet.client(), folder), ErrorKind::kBadCheckpoint);
  if (absl::IsInvalidArgument(loaded)) {
    return WithFix(WithOptions(loaded, {"set"}),
                   "use the model file and the overrides of its training");
  }
  if (absl::IsDataLoss(loaded) || absl::IsOutOfRange(loaded) || absl::IsUnimplemented(loaded)) {
    return WithFix(loaded, "use another copy of the model, or train it again");
  }
  return loaded;
}

}  // namespace

absl::StatusOr<model::ModelConfig> ReadModelConfig(const ModelOptions& options) {
  absl::StatusOr<model::ModelConfig> config =
      model::LoadModelConfig(options.config, options.set, model::LayerGrammars());
  // A missing model file is a wrong argument, just as invalid content is.
  if (!absl::IsNotFound(config.status())) return config;
  return WithCode(config.status(), absl::StatusCode::kInvalidArgument);
}

absl::Status ResolveRunFolder(ModelOptions* options, std::string* model_dir) {
  std::error_code error;
  if (!std::filesystem::is_directory(options->config, error)) return absl::OkStatus();
  const std::string folder = options->config;
  const std::string run = RunOf(folder);  // of its model, too
  if (!IsRunFolder(run)) {
    CISTERN_RETURN_IF_ERROR(CheckReadable(folder));
    return WithFix(WithOptions(absl::InvalidArgumentError(
                                   absl::StrCat(folder, " is a folder, and not that of a run (",
                                                kRunModelFile, " and metrics.jsonl)")),
                               {"model"}),
                   FixOfFolder(folder));
  }
  options->config = absl::StrCat(run, "/", kRunModelFile);
  if (model_dir->empty() && options->fleet.servers.empty()) {
    *model_dir = HoldsModel(folder) ? folder : run;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadModelFile(const ModelOptions& options) {
  constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, options.config, kMaxBytes));
  return model::WithOverrides(text, options.set);
}

absl::StatusOr<std::string> FindModelFolder(const std::string& dir) {
  for (const std::string& folder : {dir + "/model", dir}) {
    if (HoldsModel(folder)) return folder;
    CISTERN_RETURN_IF_ERROR(CheckReadable(folder));
  }
  return WithFix(
      WithOptions(absl::InvalidArgumentError(absl::StrCat("neither ", dir, "/model nor ", dir,
                                                          " holds a saved model (part-*.json)")),
                  {"model"}),
      "name the folder of a training run, or the model folder in it");
}

absl::StatusOr<std::unique_ptr<FleetSession>> OpenTrainedFleet(const ModelOptions& options,
                                                               model::ModelConfig* config,
                                                               const std::string& model_dir,
                                                               const OnNote& note) {
  const bool embedded = options.fleet.servers.empty();
  if (embedded && model_dir.empty()) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError("no trained model was named"), {"model", "servers"}),
        "name the folder of a training run, or servers that hold one");
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<FleetSession> fleet, FleetSession::Open(options.fleet));
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(fleet->client()));
  if (rows > 0) {
    model::TakeTrainedConstants(fleet->client().schema(), config);
    if (!model_dir.empty()) {
      note(absl::StrCat("note: the servers hold a model (", rows,
                        " rows), which is used; the named one is not read"));
    }
    return fleet;
  }
  if (model_dir.empty()) {
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                   "the servers ", options.fleet.servers, " hold no model")),
                               {"model", "load.name"}),
                   "name one to load, or load a saved one");
  }
  CISTERN_RETURN_IF_ERROR(LoadInto(*fleet, config, model_dir));
  return fleet;
}

absl::StatusOr<JobOptions> JobOptionsOf(const ModelOptions& options) {
  if (options.threads > uint64_t{kMaxThreads}) {
    return WithOptions(absl::InvalidArgumentError(
                           absl::StrCat(options.threads, " threads: at most ", kMaxThreads)),
                       {"threads"});
  }
  JobOptions job;
  job.threads = static_cast<int>(options.threads);
  if (options.device == "cpu") return job;
  const DeviceQuery gpus = QueryGpus();
  if (gpus.gpus.empty()) {
    return WithFix(
        WithOptions(absl::NotFoundError(absl::StrCat("no GPU: ", gpus.reason)), {"device=cpu"}),
        "use the device cpu; cistern version prints how this program was built");
  }
  const absl::Status usable = CheckGpu(gpus.gpus.front());
  if (!usable.ok()) {
    return WithFix(WithOptions(usable, {"device=cpu"}), "use the device cpu, or another machine");
  }
  job.device = DeviceKind::kCuda;
  job.check_ops = options.check_ops;
  return job;
}

}  // namespace cistern::app
