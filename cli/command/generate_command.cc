// cistern data generate: the command for app/data/generate_data.h.
#include <memory>

#include "absl/strings/numbers.h"
#include "app/data/generate_data.h"
#include "cli/command/data_commands.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

struct GenerateFlags {
  app::GenerateDataOptions options;
  std::string format = "norm", keys = "power", check = "sum", key_bits = "64";
  uint64_t max_nnz = 1;
  std::vector<std::string> slot_sizes;
};

// Flags that would have no effect, or are missing.
absl::Status CheckFlags(const app::GenerateDataOptions& options) {
  if (options.model.empty() && !options.set.empty()) {
    return absl::InvalidArgumentError("--set requires --model");
  }
  const std::string option = app::OptionBesideModel(options);
  if (!option.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        FlagOf(option), ": with --model the model's Data layer sets this; change it with --set"));
  }
  if (options.model.empty() && options.slots == 0 && options.slot_sizes.empty()) {
    return absl::InvalidArgumentError("name a --model, or the --slots or --slot-sizes of the data");
  }
  return absl::OkStatus();
}

absl::StatusOr<app::GenerateDataOptions> GenerateOptionsOf(const GenerateFlags& flags) {
  app::GenerateDataOptions options = flags.options;
  CISTERN_ASSIGN_OR_RETURN(options.format, data::FormatOfName(flags.format));
  options.check = flags.check == "sum" ? data::NormCheck::kSum : data::NormCheck::kNone;
  options.key_bits = flags.key_bits == "64" ? 64 : 32;
  options.keys =
      flags.keys == "uniform" ? data::KeyDistribution::kUniform : data::KeyDistribution::kPowerLaw;
  for (const std::string& text : flags.slot_sizes) {
    if (absl::SimpleAtoi(text, &options.slot_sizes.emplace_back())) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--slot-sizes: '", text, "' is not a whole number"));
  }
  if (flags.max_nnz > 1000000) return absl::InvalidArgumentError("--max-nnz: at most 1000000");
  options.max_nnz = static_cast<uint32_t>(flags.max_nnz);
  CISTERN_RETURN_IF_ERROR(CheckFlags(options));
  return options;
}

std::string TextOf(const data::GenerateOptions& options, const data::GenerateSummary& summary) {
  std::string text =
      absl::StrCat(data::FormatName(options.data.format), ", ", options.train_samples,
                   " training samples (", summary.train_positives, " positive), ",
                   options.test_samples, " test samples\nin the model file: \"format\": \"",
                   data::FormatName(options.data.format), "\", \"source\": \"",
                   summary.train_source, "\", \"eval_source\": \"", summary.test_source, "\"");
  if (options.data.format == data::DataFormat::kNorm) {
    absl::StrAppend(&text, ", \"check\": \"",
                    options.data.check == data::NormCheck::kSum ? "Sum" : "None",
                    "\", and in its solver \"input_key_type\": \"",
                    options.data.wide_keys ? "I64" : "I32", "\"");
  }
  if (options.data.format == data::DataFormat::kRaw) {
    absl::StrAppend(&text, ", \"num_samples\": ", options.train_samples,
                    ", \"eval_num_samples\": ", options.test_samples,
                    ", \"float_label_dense\": ", options.data.float_label_dense ? "true" : "false");
  }
  return text + "\n";
}

absl::StatusOr<Report> RunGenerate(const GenerateFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const app::GenerateDataOptions options, GenerateOptionsOf(flags));
  const std::atomic<bool>* interrupted = CatchInterrupts();
  const absl::StatusOr<app::GeneratedData> made = app::GenerateData(options, [&](uint64_t samples) {
    console.Update(absl::StrCat("writing  ", CountText(static_cast<double>(samples)), " samples"));
    return !interrupted->load();
  });
  console.Update("");
  if (!made.ok()) return made.status();
  return Report{app::JsonOf(*made), TextOf(made->made_with, *made), absl::OkStatus()};
}

void AddShapeFlags(Command& command, GenerateFlags* flags) {
  command.Flag("--model", &flags->options.model,
               {"FILE", "Takes format and shape from the Data layer of this model file.",
                "--model dlrm.json"});
  command.List("--set", &flags->options.set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set layers.data.format=Norm"});
  command.Choice("--format", &flags->format,
                 {"norm|raw|parquet", "Without --model: format to write.", "--format raw"});
  command.Flag("--labels", &flags->options.labels,
               {"INT", "Without --model: labels per sample.", "--labels 2"});
  command.Flag("--dense", &flags->options.dense,
               {"INT", "Without --model: dense features per sample.", "--dense 13"});
  command.Flag(
      "--slots", &flags->options.slots,
      {"INT", "Without --model: slots per sample; 0: as many as --slot-sizes.", "--slots 26"});
  command.Choice("--check", &flags->check,
                 {"sum|none", "Without --model, Norm: sum adds a check byte to every record.",
                  "--check none"});
  command.Choice("--key-bits", &flags->key_bits,
                 {"32|64", "Without --model, Norm: width of keys.", "--key-bits 32"});
  command.Switch("--float-label-dense", &flags->options.float_label_dense,
                 {"", "Without --model, Raw: labels and dense features as floats, not integers.",
                  "--float-label-dense"});
}

void AddKeyFlags(Command& command, GenerateFlags* flags) {
  command.List("--slot-sizes", &flags->slot_sizes, true,
               {"INT,...", "Number of distinct keys of each slot; by default slot_size_array.",
                "--slot-sizes 1000,20,500"});
  command.Flag("--keys-per-slot", &flags->options.keys_per_slot,
               {"INT", "Number of distinct keys of every slot if no sizes are given.",
                "--keys-per-slot 100000"});
  command.Choice(
      "--keys", &flags->keys,
      {"power|uniform", "Distribution of keys: bounded Pareto, or uniform.", "--keys uniform"});
  command.Flag(
      "--alpha", &flags->options.alpha,
      {"NUMBER", "Exponent of the Pareto distribution: larger means more skewed.", "--alpha 1.05"});
  command.Flag("--max-nnz", &flags->max_nnz,
               {"INT", "Norm: a slot holds 1 to this many keys.", "--max-nnz 5"});
}

void AddOutcomeFlags(Command& command, GenerateFlags* flags) {
  data::GenerateOptions& options = flags->options;
  command.Flag("--out", &options.out,
               {"DIR", "Folder to create, with train and test. Appears whole or not at all.",
                "--out data/generated", kRequired});
  command.Switch("--overwrite", &options.overwrite,
                 {"", "Replaces an existing data set.", "--overwrite"});
  command.Flag("--samples", &options.train_samples,
               {"INT", "Number of training samples.", "--samples 1000000"});
  command.Flag("--test-samples", &options.test_samples,
               {"INT", "Number of test samples.", "--test-samples 100000"});
  command.Flag("--samples-per-file", &options.samples_per_file,
               {"INT", "Norm, Parquet: samples per file.", "--samples-per-file 40960"});
  command.Flag("--click-rate", &options.click_rate,
               {"NUMBER", "Approximate share of positive labels.", "--click-rate 0.03"});
  command.Flag("--signal", &options.signal,
               {"NUMBER", "How strongly labels depend on keys; 0: not at all.", "--signal 0"});
  command.Flag("--seed", &options.seed,
               {"INT", "The same seed writes the same bytes.", "--seed 7"});
}

}  // namespace

void AddGenerateCommand(Command& data) {
  auto flags = std::make_shared<GenerateFlags>();
  Command& command =
      data.Add("generate", "Generates random data in a model's shape: Norm, Raw or Parquet.",
               "cistern data generate --model dlrm.json --out data/generated");
  AddShapeFlags(command, flags.get());
  AddKeyFlags(command, flags.get());
  AddOutcomeFlags(command, flags.get());
  command.Does([flags](Console& console) { return RunGenerate(*flags, console); });
}

}  // namespace cistern::cli
