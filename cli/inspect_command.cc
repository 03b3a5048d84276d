// cistern data inspect: the flags of worker/data/inspect.h.
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/data_commands.h"
#include "worker/data/inspect.h"

namespace cistern {
namespace {

struct InspectFlags {
  std::vector<std::string> data;
  InspectOptions options;
  std::string key_bits = "auto";
};

absl::StatusOr<Report> RunInspect(const InspectFlags& flags) {
  InspectOptions options = flags.options;
  options.source = absl::StrJoin(flags.data, ",");
  options.key_bits = flags.key_bits == "auto" ? 0 : flags.key_bits == "32" ? 32 : 64;
  CISTERN_ASSIGN_OR_RETURN(const NormSummary summary, InspectNorm(options));
  return Report{nlohmann::ordered_json::parse(InspectionJson(summary)), InspectionText(summary),
                absl::OkStatus()};
}

}  // namespace

void AddInspectCommand(Command& data) {
  auto flags = std::make_shared<InspectFlags>();
  Command& command =
      data.Add("inspect", "Reads Norm files whole, checks them, says what they hold.",
               "cistern data inspect data/train/file_list.txt --print 3");
  command.Arguments(
      "FILE", &flags->data,
      {"FILE...", "File lists or Norm files.", "data/train/file_list.txt", kRequired});
  command.Choice("--key-bits", &flags->key_bits,
                 {"auto|32|64", "Width of keys; auto tries both.", "--key-bits 32"});
  command.Flag("--max-samples", &flags->options.max_samples,
               {"INT", "Looks at the first samples only; 0: at all.", "--max-samples 100000"});
  command.Flag("--print", &flags->options.print, {"INT", "Samples to write out.", "--print 3"});
  command.Flag("--top", &flags->options.top,
               {"INT", "Most frequent keys of a slot to name.", "--top 10"});
  command.Does([flags](Console&) { return RunInspect(*flags); });
}

void AddDataCommands(Command& root) {
  Command& data = root.Add("data", "Makes Norm files from text, and looks into them.",
                           "cistern data inspect data/train/file_list.txt");
  AddConvertCommand(data);
  AddInspectCommand(data);
}

}  // namespace cistern
