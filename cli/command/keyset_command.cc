// cistern data keyset: the command for app/data/keyset.h.
#include <memory>

#include "app/data/keyset.h"
#include "cli/command/data_commands.h"

namespace cistern::cli {
namespace {

struct KeysetFlags {
  std::string model;
  std::vector<std::string> set, data;
  std::string input, out, check, key_bits = "auto";
};

absl::StatusOr<Report> RunKeyset(const KeysetFlags& flags) {
  if (flags.out.empty() == flags.check.empty()) {
    return absl::InvalidArgumentError(
        "name either a keyset to write (--out) or a keyset to check (--check)");
  }
  app::ModelKeysetOptions options;
  options.model = flags.model;
  options.set = flags.set;
  options.data = flags.data;
  options.input = flags.input;
  options.key_bits = flags.key_bits == "auto" ? 0 : flags.key_bits == "64" ? 64 : 32;
  options.check = flags.out.empty();
  options.file = options.check ? flags.check : flags.out;
  const absl::StatusOr<app::ModelKeyset> summary = app::KeysetOfModel(options);
  if (OptionsOf(summary.status()) == std::vector<std::string>{"input"}) {
    return absl::InvalidArgumentError(absl::StrCat("--input ", summary.status().message()));
  }
  if (!summary.ok()) return summary.status();
  const std::string& path = options.file;
  Report report;
  report.json = {{"file", path},
                 {"key_bits", summary->wide_keys ? 64 : 32},
                 {"samples", summary->samples},
                 {"keys", summary->keys},
                 {"in_file", summary->in_file},
                 {"unused", summary->unused},
                 {"duplicates", summary->duplicates}};
  report.text =
      absl::StrCat(path, ": ", summary->in_file, " keys of ", summary->wide_keys ? "8" : "4",
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

}  // namespace cistern::cli
