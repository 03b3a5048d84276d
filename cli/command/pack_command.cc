// cistern data pack: the command for app/data/pack_data.h.
#include "app/data/pack_data.h"

#include <memory>

#include "app/data/convert_data.h"
#include "cli/command/data_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/table_flags.h"
#include "cli/terminal/aligned_text.h"

namespace cistern::cli {
namespace {

struct PackFlags {
  app::PackDataOptions options;
  std::string format = "csv", delimiter, separator = "|", on_bad_row = "stop";
};

absl::StatusOr<app::PackDataOptions> PackOptionsOf(const PackFlags& flags) {
  app::PackDataOptions options = flags.options;
  options.format = ValueOf(flags.format, data::TextFormatWords(/*packed=*/true));
  if (!flags.delimiter.empty()) {
    CISTERN_ASSIGN_OR_RETURN(options.delimiter, CharacterOf("--delimiter", flags.delimiter));
  }
  if (!flags.separator.empty()) {
    CISTERN_ASSIGN_OR_RETURN(options.separator, CharacterOf("--separator", flags.separator));
  }
  options.skip_bad = flags.on_bad_row == "skip";
  return options;
}

std::string TextOf(const data::PackSummary& summary) {
  std::string text = absl::StrCat(
      summary.manifest.samples(), " samples in ", summary.manifest.shards.size(), " shards, ",
      BytesText(app::PackedBytes(summary)), ": ", summary.file_list, "\n");
  if (summary.resumed_shards > 0) {
    absl::StrAppend(&text, summary.resumed_shards, " shards are from a stopped run\n");
  }
  for (const auto& one : summary.manifest.skipped) {
    absl::StrAppend(&text, "skipped ", one.samples, " samples (", one.cause,
                    "), the first: ", one.first, "\n");
  }
  return text;
}

absl::StatusOr<Report> RunPack(const PackFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const app::PackDataOptions options, PackOptionsOf(flags));
  const absl::StatusOr<data::PackSummary> summary = app::PackData(options, RowCallsOn(console));
  console.Update("");
  if (!summary.ok()) return summary.status();
  return Report{app::JsonOf(*summary), TextOf(*summary), absl::OkStatus()};
}

void AddInputFlags(Command& command, PackFlags* flags) {
  app::PackDataOptions& options = flags->options;
  command.List(
      "--input", &options.input, true,
      {"FILE,...",
       "Text or Parquet files, or folders of them, read in this order; - is standard input.",
       "--input train.csv"});
  command.Choice(
      "--format", &flags->format,
      {ChoiceOf(data::TextFormatWords(/*packed=*/true)), "Format of the text.", "--format criteo"});
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
  command.Flag("--model", &options.model,
               {"FILE", "Packs the training data of this model's Data layer instead of text.",
                "--model dlrm.json"});
  command.List("--set", &options.set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set layers.data.source=day_0.parquet"});
}

void AddShardFlags(Command& command, PackFlags* flags) {
  app::PackDataOptions& options = flags->options;
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
      "--groups", &options.group_texts, true,
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

}  // namespace cistern::cli
