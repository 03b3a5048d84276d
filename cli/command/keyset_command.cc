// cistern data keyset: the command for worker/data/format/keyset.h.
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/command/data_commands.h"
#include "common/io/new_file.h"
#include "worker/data/format/keyset.h"
#include "worker/model/config/model_config.h"

namespace cistern {
namespace {

struct KeysetFlags {
  std::string model;
  std::vector<std::string> set, data;
  std::string input, out, check, key_bits = "auto";
};

// Takes the format and shape of the data from the model, and the sparse input from the flags.
absl::StatusOr<KeysetOptions> KeysetOptionsOf(const KeysetFlags& flags) {
  const absl::StatusOr<ModelConfig> config =
      MissingIsUsage(LoadModelConfig(flags.model, flags.set));
  if (!config.ok()) return config.status();
  KeysetOptions options;
  options.data =
      DataSetOf(*config, flags.data.empty() ? config->data.source : absl::StrJoin(flags.data, ","));
  if (flags.data.empty()) options.data.num_samples = config->data.num_samples;
  // By default, keys in the keyset are as wide as in the data files.
  options.wide_keys =
      flags.key_bits == "64" || (flags.key_bits == "auto" && HasWideKeys(options.data));
  if (flags.input.empty()) return options;
  std::vector<std::string> tops;
  for (size_t i = 0; i < config->data.sparse.size(); ++i) {
    tops.push_back(config->data.sparse[i].top);
    if (tops.back() == flags.input) options.input = static_cast<int>(i);
  }
  if (options.input >= 0) return options;
  return absl::InvalidArgumentError(absl::StrCat("--input ", flags.input, ": the sparse inputs of ",
                                                 flags.model, " are ", absl::StrJoin(tops, ", ")));
}

absl::StatusOr<Report> RunKeyset(const KeysetFlags& flags) {
  if (flags.out.empty() == flags.check.empty()) {
    return absl::InvalidArgumentError(
        "name either a keyset to write (--out) or a keyset to check (--check)");
  }
  CISTERN_ASSIGN_OR_RETURN(const KeysetOptions options, KeysetOptionsOf(flags));
  if (!flags.out.empty()) CISTERN_RETURN_IF_ERROR(NewFile::Check(flags.out, {flags.model}));
  const std::string& path = flags.out.empty() ? flags.check : flags.out;
  LocalFileSystem files;
  const absl::StatusOr<KeysetSummary> summary = MissingIsUsage(
      flags.out.empty() ? CheckKeyset(options, path) : WriteKeyset(files, options, path));
  if (!summary.ok()) return summary.status();
  Report report;
  report.json = {{"file", path},
                 {"key_bits", options.wide_keys ? 64 : 32},
                 {"samples", summary->samples},
                 {"keys", summary->keys},
                 {"in_file", summary->in_file},
                 {"unused", summary->unused},
                 {"duplicates", summary->duplicates}};
  report.text =
      absl::StrCat(path, ": ", summary->in_file, " keys of ", options.wide_keys ? "8" : "4",
                   " bytes; ", summary->samples, " samples have ", summary->keys, " distinct keys");
  if (!flags.check.empty()) {
    absl::StrAppend(&report.text, ", all of them in the file; ", summary->unused,
                    " of the file are not used, ", summary->duplicates, " are repeated");
  }
  report.text += "\n";
  return report;
}

}  // namespace

void AddKeysetCommand(Command& data) {
  auto flags = std::make_shared<KeysetFlags>();
  Command& command =
      data.Add("keyset", "Writes or checks a HugeCTR keyset: the distinct keys of a data set.",
               "cistern data keyset --model dlrm.json --out train.keyset");
  command.Flag("--model", &flags->model,
               {"FILE", "The model file, whose Data layer describes the data.", "--model dlrm.json",
                kRequired});
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set layers.data.source=day1.bin"});
  command.List(
      "--data", &flags->data, true,
      {"FILE,...", "File lists or data files; by default the model's source.", "--data day1.bin"});
  command.Flag(
      "--out", &flags->out,
      {"FILE", "The keyset to write, with keys in ascending order.", "--out train.keyset"});
  command.Flag(
      "--check", &flags->check,
      {"FILE", "A keyset to check: it must hold every key of the data.", "--check train.keyset"});
  command.Flag("--input", &flags->input,
               {"NAME", "Only the keys of this sparse input, for a keyset of its own table.",
                "--input data1"});
  command.Choice(
      "--key-bits", &flags->key_bits,
      {"auto|32|64", "Width of keys in the keyset; auto: as in the data.", "--key-bits 64"});
  command.Does([flags](Console&) { return RunKeyset(*flags); });
}

}  // namespace cistern
