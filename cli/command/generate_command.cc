// cistern data generate: the command for worker/data/prepare/generate.h.
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "cli/command/data_commands.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/prepare/generate.h"
#include "worker/model/config/model_config.h"

namespace cistern {
namespace {

struct GenerateFlags {
  GenerateOptions options;
  std::string model;
  std::vector<std::string> set;
  std::string format = "norm", keys = "power", check = "sum", key_bits = "64";
  uint64_t labels = 1, dense = 0, slots = 0, keys_per_slot = 1000, max_nnz = 1;
  std::vector<std::string> slot_sizes;
};

// Refuses flags that would have no effect.
absl::Status CheckFlags(const GenerateFlags& flags) {
  const GenerateFlags untouched;
  if (flags.model.empty()) {
    return flags.set.empty() ? absl::OkStatus()
                             : absl::InvalidArgumentError("--set requires --model");
  }
  const std::pair<const char*, bool> given[] = {
      {"--format", flags.format != untouched.format},
      {"--labels", flags.labels != untouched.labels},
      {"--dense", flags.dense != untouched.dense},
      {"--slots", flags.slots != untouched.slots},
      {"--check", flags.check != untouched.check},
      {"--key-bits", flags.key_bits != untouched.key_bits},
      {"--float-label-dense", flags.options.data.float_label_dense}};
  for (const auto& [flag, is_given] : given) {
    if (!is_given) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": with --model the model's Data layer sets this; change it with --set"));
  }
  return OutputFolder::CheckSpares(flags.options.out, {flags.model});
}

// Takes the shape and the format from a model's Data layer.
absl::Status TakeModel(const GenerateFlags& flags, DataSetOptions* data) {
  const absl::StatusOr<ModelConfig> config =
      MissingIsUsage(LoadModelConfig(flags.model, flags.set));
  if (!config.ok()) return config.status();
  *data = DataSetOf(*config, "");
  for (size_t i = 0; i < data->shape.slot_nums.size(); ++i) {
    const uint32_t bound = data->shape.max_keys[i], slots = data->shape.slot_nums[i];
    if (bound == 0 || bound >= slots * flags.max_nnz) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flags.model, ": layers[0].sparse[", i, "] takes ", bound, " keys a sample, fewer than ",
        flags.max_nnz, " in each of its ", slots, " slots: lower --max-nnz"));
  }
  return absl::OkStatus();
}

absl::Status TakeFlags(const GenerateFlags& flags, DataSetOptions* data) {
  CISTERN_ASSIGN_OR_RETURN(data->format, FormatOfName(flags.format));
  data->check = flags.check == "sum" ? NormCheck::kSum : NormCheck::kNone;
  data->wide_keys = flags.key_bits == "64";
  const uint64_t slots = flags.slots == 0 ? flags.slot_sizes.size() : flags.slots;
  if (slots == 0) {
    return absl::InvalidArgumentError("name a --model, or the --slots or --slot-sizes of the data");
  }
  constexpr uint64_t kMost = 1 << 20;
  if (flags.labels > kMost || flags.dense > kMost || slots > kMost) {
    return absl::InvalidArgumentError("--labels, --dense and --slots must be at most 1048576");
  }
  data->shape.label_dim = static_cast<uint32_t>(flags.labels);
  data->shape.dense_dim = static_cast<uint32_t>(flags.dense);
  data->shape.slot_nums = {static_cast<uint32_t>(slots)};
  data->shape.max_keys = {0};
  return absl::OkStatus();
}

absl::Status TakeSlotSizes(const GenerateFlags& flags, DataSetOptions* data) {
  if (!flags.slot_sizes.empty()) {
    data->slot_sizes.clear();
    data->slot_starts.clear();
  }
  for (const std::string& text : flags.slot_sizes) {
    uint64_t size = 0;
    if (!absl::SimpleAtoi(text, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--slot-sizes: '", text, "' is not a whole number"));
    }
    data->slot_sizes.push_back(size);
  }
  if (!data->slot_sizes.empty()) return absl::OkStatus();
  data->slot_starts.resize(data->shape.slot_nums.size());
  for (size_t input = 0; input < data->shape.slot_nums.size(); ++input) {
    const std::vector<Key>& starts = data->slot_starts[input];
    for (uint32_t slot = 0; slot < data->shape.slot_nums[input]; ++slot) {
      data->slot_sizes.push_back(starts.empty() ? flags.keys_per_slot
                                                : starts[slot + 1] - starts[slot]);
    }
  }
  return absl::OkStatus();
}

nlohmann::ordered_json JsonOf(const GenerateOptions& options, const GenerateSummary& summary) {
  nlohmann::ordered_json json;
  json["format"] = FormatName(options.data.format);
  json["source"] = summary.train_source;
  json["eval_source"] = summary.test_source;
  json["train_samples"] = options.train_samples;
  json["test_samples"] = options.test_samples;
  json["train_positives"] = summary.train_positives;
  json["test_positives"] = summary.test_positives;
  json["label_dim"] = options.data.shape.label_dim;
  json["dense_dim"] = options.data.shape.dense_dim;
  json["slot_num"] = SlotNum(options.data.shape);
  json["slot_size_array"] = options.data.slot_sizes;
  return json;
}

std::string TextOf(const GenerateOptions& options, const GenerateSummary& summary) {
  std::string text =
      absl::StrCat(FormatName(options.data.format), ", ", options.train_samples,
                   " training samples (", summary.train_positives, " positive), ",
                   options.test_samples, " test samples\nin the model file: \"format\": \"",
                   FormatName(options.data.format), "\", \"source\": \"", summary.train_source,
                   "\", \"eval_source\": \"", summary.test_source, "\"");
  if (options.data.format == DataFormat::kNorm) {
    absl::StrAppend(&text, ", \"check\": \"",
                    options.data.check == NormCheck::kSum ? "Sum" : "None",
                    "\", and in its solver \"input_key_type\": \"",
                    options.data.wide_keys ? "I64" : "I32", "\"");
  }
  if (options.data.format == DataFormat::kRaw) {
    absl::StrAppend(&text, ", \"num_samples\": ", options.train_samples,
                    ", \"eval_num_samples\": ", options.test_samples,
                    ", \"float_label_dense\": ", options.data.float_label_dense ? "true" : "false");
  }
  return text + "\n";
}

absl::StatusOr<Report> RunGenerate(const GenerateFlags& flags, Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckFlags(flags));
  GenerateOptions options = flags.options;
  const bool float_raw = options.data.float_label_dense;
  CISTERN_RETURN_IF_ERROR(flags.model.empty() ? TakeFlags(flags, &options.data)
                                              : TakeModel(flags, &options.data));
  if (flags.model.empty()) options.data.float_label_dense = float_raw;
  CISTERN_RETURN_IF_ERROR(TakeSlotSizes(flags, &options.data));
  options.keys = flags.keys == "uniform" ? KeyDistribution::kUniform : KeyDistribution::kPowerLaw;
  if (flags.max_nnz > 1000000) return absl::InvalidArgumentError("--max-nnz: at most 1000000");
  options.max_nnz = static_cast<uint32_t>(flags.max_nnz);
  const std::atomic<bool>* interrupted = CatchInterrupts();
  const absl::StatusOr<GenerateSummary> summary = Generate(options, [&](uint64_t samples) {
    console.Update(absl::StrCat("writing  ", CountText(static_cast<double>(samples)), " samples"));
    return !interrupted->load();
  });
  console.Update("");
  if (!summary.ok()) return summary.status();
  return Report{JsonOf(options, *summary), TextOf(options, *summary), absl::OkStatus()};
}

void AddShapeFlags(Command& command, GenerateFlags* flags) {
  command.Flag("--model", &flags->model,
               {"FILE", "Takes format and shape from the Data layer of this model file.",
                "--model dlrm.json"});
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set layers.data.format=Norm"});
  command.Choice("--format", &flags->format,
                 {"norm|raw|parquet", "Without --model: format to write.", "--format raw"});
  command.Flag("--labels", &flags->labels,
               {"INT", "Without --model: labels per sample.", "--labels 2"});
  command.Flag("--dense", &flags->dense,
               {"INT", "Without --model: dense features per sample.", "--dense 13"});
  command.Flag(
      "--slots", &flags->slots,
      {"INT", "Without --model: slots per sample; 0: as many as --slot-sizes.", "--slots 26"});
  command.Choice("--check", &flags->check,
                 {"sum|none", "Without --model, Norm: sum adds a check byte to every record.",
                  "--check none"});
  command.Choice("--key-bits", &flags->key_bits,
                 {"32|64", "Without --model, Norm: width of keys.", "--key-bits 32"});
  command.Switch("--float-label-dense", &flags->options.data.float_label_dense,
                 {"", "Without --model, Raw: labels and dense features as floats, not integers.",
                  "--float-label-dense"});
}

void AddKeyFlags(Command& command, GenerateFlags* flags) {
  command.List("--slot-sizes", &flags->slot_sizes, true,
               {"INT,...", "Number of distinct keys of each slot; by default slot_size_array.",
                "--slot-sizes 1000,20,500"});
  command.Flag("--keys-per-slot", &flags->keys_per_slot,
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
  GenerateOptions& options = flags->options;
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

}  // namespace cistern
