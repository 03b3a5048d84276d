// cistern data pack: the command for worker/data/prepare/pack.h.
#include <memory>

#include "cli/command/data_commands.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "worker/data/prepare/pack.h"
#include "worker/model/config/model_config.h"

namespace cistern {
namespace {

struct PackFlags {
  PackOptions options;
  std::string format = "csv", delimiter, separator = "|", on_bad_row = "stop";
  std::vector<std::string> groups;
  std::string model;
  std::vector<std::string> set;
};

absl::Status TakeCharacter(const char* flag, const std::string& text, char* character) {
  if (text.empty()) return absl::OkStatus();
  if (text.size() > 1 && text != "\\t") {
    return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "' is not one character"));
  }
  *character = text.size() > 1 ? '\t' : text[0];
  return absl::OkStatus();
}

TextFormat FormatOf(const std::string& name) {
  return name == "tsv"      ? TextFormat::kTsv
         : name == "libsvm" ? TextFormat::kLibsvm
         : name == "criteo" ? TextFormat::kCriteo
                            : TextFormat::kCsv;
}

absl::StatusOr<PackOptions> PackOptionsOf(const PackFlags& flags) {
  PackOptions options = flags.options;
  options.format = FormatOf(flags.format);
  CISTERN_RETURN_IF_ERROR(TakeCharacter("--delimiter", flags.delimiter, &options.delimiter));
  CISTERN_RETURN_IF_ERROR(TakeCharacter("--separator", flags.separator, &options.separator));
  options.skip_bad = flags.on_bad_row == "skip";
  for (const std::string& text : flags.groups) {
    CISTERN_ASSIGN_OR_RETURN(options.groups.emplace_back(), ParseLengthGroup(text));
  }
  if (flags.model.empty()) return options;
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(flags.model, flags.set));
  options.data = DataSetOf(config, config.data.source);
  options.data->num_samples = config.data.num_samples;
  return options;
}

nlohmann::ordered_json JsonOf(const PackSummary& summary) {
  nlohmann::ordered_json json;
  uint64_t bytes = 0;
  for (const auto& shard : summary.manifest.shards) bytes += shard.bytes;
  json["samples"] = summary.manifest.samples();
  json["shards"] = summary.manifest.shards.size();
  json["resumed_shards"] = summary.resumed_shards;
  json["bytes"] = bytes;
  json["file_list"] = summary.file_list;
  json["skipped"] = nlohmann::ordered_json::array();
  for (const auto& one : summary.manifest.skipped) {
    json["skipped"].push_back(
        {{"cause", one.cause}, {"samples", one.samples}, {"first", one.first}});
  }
  return json;
}

std::string TextOf(const PackSummary& summary) {
  uint64_t bytes = 0;
  for (const auto& shard : summary.manifest.shards) bytes += shard.bytes;
  std::string text =
      absl::StrCat(summary.manifest.samples(), " samples in ", summary.manifest.shards.size(),
                   " shards, ", BytesText(bytes), ": ", summary.file_list, "\n");
  if (summary.resumed_shards > 0) {
    absl::StrAppend(&text, summary.resumed_shards, " shards are from a stopped run\n");
  }
  for (const auto& one : summary.manifest.skipped) {
    absl::StrAppend(&text, "skipped ", one.samples, " samples (", one.cause,
                    "), the first: ", one.first, "\n");
  }
  return text;
}

absl::StatusOr<PackSummary> PackAs(const PackFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const PackOptions options, PackOptionsOf(flags));
  const std::atomic<bool>* interrupted = CatchInterrupts();
  return Pack(options, [&](uint64_t samples) {
    console.Update(absl::StrCat("packing  ", CountText(static_cast<double>(samples)), " samples"));
    return !interrupted->load();
  });
}

absl::StatusOr<Report> RunPack(const PackFlags& flags, Console& console) {
  const absl::StatusOr<PackSummary> summary = MissingIsUsage(PackAs(flags, console));
  console.Update("");
  if (!summary.ok()) return summary.status();
  return Report{JsonOf(*summary), TextOf(*summary), absl::OkStatus()};
}

void AddInputFlags(Command& command, PackFlags* flags) {
  PackOptions& options = flags->options;
  command.List(
      "--input", &options.input, true,
      {"FILE,...",
       "Text or Parquet files, or folders of them, read in this order; - is standard input.",
       "--input train.csv"});
  command.Choice("--format", &flags->format,
                 {"csv|tsv|libsvm|criteo", "Format of the text.", "--format criteo"});
  command.Flag("--delimiter", &flags->delimiter,
               {"CHAR", "Field separator; by default ',' for csv, tab for tsv and criteo.",
                "--delimiter ';'"});
  command.List("--columns", &options.columns, true,
               {"NAME,...", "Column names of a file without a header line; C1..C26 is a range.",
                "--columns label,I1..I13,C1..C26"});
  command.List("--multi", &options.multi, true,
               {"COLUMN,...", "Columns that hold several values.", "--multi genres"});
  command.Flag("--separator", &flags->separator,
               {"CHAR", "Separator of the values in a --multi column.", "--separator '|'"});
  command.Switch("--numbers", &options.numbers,
                 {"", "Whole numbers become keys instead of tokens; libsvm: always.", "--numbers"});
  command.Choice(
      "--on-bad-row", &flags->on_bad_row,
      {"stop|skip", "What happens to a row that cannot be packed.", "--on-bad-row skip"});
  command.Flag("--model", &flags->model,
               {"FILE", "Packs the training data of this model's Data layer instead of text.",
                "--model dlrm.json"});
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set layers.data.source=day_0.parquet"});
}

void AddShardFlags(Command& command, PackFlags* flags) {
  PackOptions& options = flags->options;
  command.Flag("--out", &options.out,
               {"DIR",
                "Folder of the shards, manifest.json and file_list.txt. Repeating a stopped "
                "command continues it.",
                "--out data/shards", kRequired});
  command.Switch("--overwrite", &options.overwrite,
                 {"", "Replaces an existing set of shards.", "--overwrite"});
  command.Flag("--name", &options.name, {"NAME", "Shards are NAME-00000.tar ...", "--name part"});
  command.Flag("--samples-per-shard", &options.samples_per_shard,
               {"INT", "Samples per shard.", "--samples-per-shard 10000"});
  command.Flag("--bytes-per-shard", &options.bytes_per_shard,
               {"BYTES", "Largest size of a shard; 0: no limit.", "--bytes-per-shard 100000000"});
  command.List(
      "--groups", &flags->groups, true,
      {"LEAST:END,...", "Sorts samples by length into folders LEAST_END; others are left out.",
       "--groups 10:500,500:800"});
  command.Flag("--length-column", &options.length_column,
               {"COLUMN",
                "Text: the column whose values are counted as the length; a data set: the keys of "
                "a sample are.",
                "--length-column history"});
}

}  // namespace

void AddPackCommand(Command& data) {
  auto flags = std::make_shared<PackFlags>();
  Command& command =
      data.Add("pack", "Packs text or a data set into tar shards (WebDataset's layout).",
               "cistern data pack --format criteo --input train.txt --out data/shards");
  AddInputFlags(command, flags.get());
  AddShardFlags(command, flags.get());
  command.Does([flags](Console& console) { return RunPack(*flags, console); });
}

}  // namespace cistern
