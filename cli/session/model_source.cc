#include "cli/session/model_source.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "cli/session/run_folder.h"
#include "cli/session/trained_constants.h"
#include "cli/terminal/exit_code.h"
#include "common/saved_model/model_folder.h"
#include "cuda/core/device.h"

namespace cistern {
namespace {

bool HoldsModel(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "part-") && absl::EndsWith(name, ".json")) return true;
  }
  return false;
}

absl::Status LoadInto(FleetSession& fleet, ModelConfig* config, const std::string& model_dir) {
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(model_dir));
  LocalFileSystem files;
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
  if (parts.ok() && !parts->empty()) TakeTrainedConstants(parts->front().schema, config);
  const absl::Status loaded =
      WithKind(LoadModel(files, *config, fleet.client(), folder), ErrorKind::kBadCheckpoint);
  switch (ExitCodeOf(loaded)) {
    case ExitCode::kUsage:
      return WithFix(loaded, "use the model file and the --set flags of its training");
    case ExitCode::kBadCheckpoint:
      return WithFix(loaded, "use another copy of the model, or train it again");
    default:
      return loaded;
  }
}

}  // namespace

void AddModelFileFlags(Command& command, ModelFlags* flags) {
  command.Argument("MODEL", &flags->config,
                   {"FILE", "The model file: HugeCTR 2.3 JSON, see docs/configuration.md.",
                    "deepfm.json", kRequired});
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set solver.batchsize=4096"});
}

void AddModelFlags(Command& command, ModelFlags* flags) {
  AddModelFileFlags(command, flags);
  command.Flag("--threads", &flags->threads,
               {"INT", "Number of compute threads; 0: one per core.", "--threads 4"});
  command.Choice(
      "--device", &flags->device,
      {"cpu|cuda", "Device that runs the model; cuda: the first GPU that the driver shows.",
       "--device cuda"});
  command.Switch(
      "--check-ops", &flags->check_ops,
      {"", "On a GPU: waits after each op, so that an error names the op that failed; slow.",
       "--check-ops"});
  AddFleetFlags(command, &flags->fleet, true);
  AddTakeOverFlag(command, &flags->fleet);
}

absl::StatusOr<ModelConfig> ReadModelConfig(const ModelFlags& flags) {
  absl::StatusOr<ModelConfig> config = MissingIsUsage(LoadModelConfig(flags.config, flags.set));
  if (KindOf(config.status()) != ErrorKind::kTable) return config;
  return WithFix(config.status(), absl::StrCat("cistern train ", flags.config, " --out RUN"));
}

absl::Status TakeRunFolder(ModelFlags* flags, std::string* model_dir) {
  std::error_code error;
  if (!std::filesystem::is_directory(flags->config, error)) return absl::OkStatus();
  const std::string folder = flags->config;
  if (!IsRunFolder(folder)) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(
            folder, " is a folder, not a regular file, and not the --out folder of a run (",
            kRunModelFile, " and metrics.jsonl)")),
        "name the model file, and the folder with --model");
  }
  flags->config = absl::StrCat(folder, "/", kRunModelFile);
  if (model_dir->empty() && flags->fleet.servers.empty()) *model_dir = folder;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadModelFile(const ModelFlags& flags) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, flags.config, kMostBytes));
  return WithOverrides(text, flags.set);
}

absl::StatusOr<std::string> FindModelFolder(const std::string& dir) {
  for (const std::string& folder : {dir + "/model", dir}) {
    if (HoldsModel(folder)) return folder;
  }
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat("--model ", dir, ": neither ", dir, "/model nor ",
                                              dir, " holds a saved model (part-*.json)")),
      "name the --out folder of a training run, or the model folder in it");
}

absl::StatusOr<std::unique_ptr<FleetSession>> OpenTrainedFleet(const ModelFlags& flags,
                                                               ModelConfig* config,
                                                               const std::string& model_dir,
                                                               Console& console) {
  const bool embedded = flags.fleet.servers.empty();
  if (embedded && model_dir.empty()) {
    return WithFix(absl::InvalidArgumentError("no trained model was named"),
                   "add --model DIR (the --out folder of a training run), or --servers "
                   "host:port,...");
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<FleetSession> fleet, FleetSession::Open(flags.fleet));
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(fleet->client()));
  if (rows > 0) {
    TakeTrainedConstants(fleet->client().schema(), config);
    if (!model_dir.empty()) {
      console.Say(absl::StrCat("note: the servers hold a model (", rows,
                               " rows), which is used; --model is not read"));
    }
    return fleet;
  }
  if (model_dir.empty()) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat("the servers ", flags.fleet.servers, " hold no model")),
                   "add --model DIR to load one, or cistern load --servers ... --name NAME");
  }
  CISTERN_RETURN_IF_ERROR(LoadInto(*fleet, config, model_dir));
  return fleet;
}

absl::StatusOr<JobOptions> JobOptionsOf(const ModelFlags& flags) {
  constexpr uint64_t kMaxThreads = 4096;
  if (flags.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads ", flags.threads, ": at most ", kMaxThreads));
  }
  JobOptions options;
  options.threads = static_cast<int>(flags.threads);
  if (flags.device == "cpu") return options;
  const DeviceQuery gpus = QueryGpus();
  if (gpus.gpus.empty()) {
    return WithFix(absl::NotFoundError(absl::StrCat("--device cuda: no GPU: ", gpus.reason)),
                   "use --device cpu; cistern version prints how this program was built");
  }
  const absl::Status usable = CheckGpu(gpus.gpus.front());
  if (!usable.ok()) {
    return WithFix(AddContext(usable, "--device cuda"), "use --device cpu, or another machine");
  }
  options.device = DeviceKind::kCuda;
  options.check_ops = flags.check_ops;
  return options;
}

}  // namespace cistern
