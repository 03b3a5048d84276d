// cistern data inspect: the command for app/data/inspect_data.h.
#include <memory>

#include "absl/strings/str_join.h"
#include "app/data/inspect_data.h"
#include "cli/command/data_commands.h"

namespace cistern::cli {
namespace {

struct InspectFlags {
  std::vector<std::string> data;
  app::InspectDataOptions options;
  std::string key_bits = "auto";
};

absl::StatusOr<Report> RunInspect(const InspectFlags& flags) {
  app::InspectDataOptions options = flags.options;
  options.source = absl::StrJoin(flags.data, ",");
  if (options.model.empty() && options.source.empty()) {
    return absl::InvalidArgumentError("name the files, or a --model whose source to inspect");
  }
  options.key_bits = flags.key_bits == "auto" ? 0 : flags.key_bits == "32" ? 32 : 64;
  CISTERN_ASSIGN_OR_RETURN(const data::NormSummary summary, app::InspectData(options));
  return Report{nlohmann::ordered_json::parse(data::InspectionJson(summary)),
                data::InspectionText(summary), absl::OkStatus()};
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
  command.Flag("--model", &flags->options.model,
               {"FILE", "Model file whose Data layer describes the files; all but Norm need it.",
                "--model dlrm.json"});
  command.List("--set", &flags->options.set, false,
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

}  // namespace cistern::cli
