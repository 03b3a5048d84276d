// cistern data inspect: the command for worker/data/prepare/inspect.h.
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/command/data_commands.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/prepare/inspect.h"
#include "worker/model/config/model_config.h"

namespace cistern {
namespace {

struct InspectFlags {
  std::string model;
  std::vector<std::string> set;
  std::vector<std::string> data;
  InspectOptions options;
  std::string key_bits = "auto";
};

absl::StatusOr<Report> ReportOf(const NormSummary& summary) {
  return Report{nlohmann::ordered_json::parse(InspectionJson(summary)), InspectionText(summary),
                absl::OkStatus()};
}

// Inspects files in the format and shape of a model's Data layer.
absl::StatusOr<Report> InspectAs(const InspectFlags& flags, InspectOptions options) {
  const absl::StatusOr<ModelConfig> config =
      MissingIsUsage(LoadModelConfig(flags.model, flags.set));
  if (!config.ok()) return config.status();
  DataSetOptions data = DataSetOf(*config, "");
  if (options.source.empty()) {
    options.source = config->data.source;
    data.num_samples = config->data.num_samples;
  }
  if (data.format == DataFormat::kNorm) {
    options.key_bits = data.wide_keys ? 64 : 32;
    CISTERN_ASSIGN_OR_RETURN(const NormSummary norm, InspectNorm(options));
    if (norm.shape.label_dim == data.shape.label_dim &&
        norm.shape.dense_dim == data.shape.dense_dim &&
        SlotNum(norm.shape) == SlotNum(data.shape)) {
      return ReportOf(norm);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        options.source, " has label_dim ", norm.shape.label_dim, ", dense_dim ",
        norm.shape.dense_dim, ", slot_num ", SlotNum(norm.shape), ", but ", flags.model, " has ",
        data.shape.label_dim, ", ", data.shape.dense_dim, ", ", SlotNum(data.shape),
        ": change the model file to match the data; without --model the files describe "
        "themselves"));
  }
  CISTERN_ASSIGN_OR_RETURN(const NormSummary summary, InspectDataSet(options, data));
  return ReportOf(summary);
}

absl::StatusOr<Report> Inspect(const InspectFlags& flags) {
  InspectOptions options = flags.options;
  options.source = absl::StrJoin(flags.data, ",");
  if (!flags.model.empty()) return InspectAs(flags, options);
  if (options.source.empty()) {
    return absl::InvalidArgumentError("name the files, or a --model whose source to inspect");
  }
  options.key_bits = flags.key_bits == "auto" ? 0 : flags.key_bits == "32" ? 32 : 64;
  CISTERN_ASSIGN_OR_RETURN(const NormSummary summary, InspectNorm(options));
  return ReportOf(summary);
}

absl::StatusOr<Report> RunInspect(const InspectFlags& flags) {
  return MissingIsUsage(Inspect(flags));
}

}  // namespace

void AddInspectCommand(Command& data) {
  auto flags = std::make_shared<InspectFlags>();
  Command& command =
      data.Add("inspect", "Reads and checks data files, and summarizes their contents.",
               "cistern data inspect data/train/file_list.txt --print 3");
  command.Arguments("FILE", &flags->data,
                    {"FILE...", "File lists or data files; with --model, by default its source.",
                     "data/train/file_list.txt"});
  command.Flag("--model", &flags->model,
               {"FILE", "Model file whose Data layer describes the files; Raw and Parquet need it.",
                "--model dlrm.json"});
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set layers.data.format=Parquet"});
  command.Choice("--key-bits", &flags->key_bits,
                 {"auto|32|64", "Norm: width of keys; auto tries both.", "--key-bits 32"});
  command.Flag("--max-samples", &flags->options.max_samples,
               {"INT", "Reads this many samples only; 0: all.", "--max-samples 100000"});
  command.Flag("--print", &flags->options.print,
               {"INT", "Number of samples to print.", "--print 3"});
  command.Flag("--top", &flags->options.top,
               {"INT", "Number of most frequent keys to print per slot.", "--top 10"});
  command.Does([flags](Console&) { return RunInspect(*flags); });
}

void AddDataCommands(Command& root) {
  Command& data = root.Add("data", "Creates and inspects data files.",
                           "cistern data inspect data/train/file_list.txt");
  AddConvertCommand(data);
  AddCriteoCommand(data);
  AddGenerateCommand(data);
  AddInspectCommand(data);
  AddKeysetCommand(data);
  AddLookupCommand(data);
  AddPackCommand(data);
}

}  // namespace cistern
