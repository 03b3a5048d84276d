// cistern data convert: the command for app/data/convert_data.h.
#include <memory>

#include "absl/strings/str_format.h"
#include "app/data/convert_data.h"
#include "cli/command/data_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/command/table_flags.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

// Flags that must be converted into ConvertOptions, which holds the others directly.
struct ConvertFlags {
  app::ConvertDataOptions options;
  std::string format = "csv", delimiter, label_threshold, dense_transform = "auto";
  std::string separator = "|", missing = "none", rare = "key", keys = "auto", key_bits = "64";
  std::string libsvm_slots = "position", check = "sum", part = "all";
};

absl::StatusOr<app::ConvertDataOptions> ConvertOptionsOf(const ConvertFlags& flags) {
  app::ConvertDataOptions options = flags.options;
  options.format = ValueOf(flags.format, data::TextFormatWords());
  options.dense_transform = ValueOf(flags.dense_transform, app::kDenseTransforms);
  options.missing = ValueOf(flags.missing, app::kStandIns);
  options.rare = ValueOf(flags.rare, app::kStandIns);
  options.keys = ValueOf(flags.keys, app::kKeyModes);
  options.key_bits = flags.key_bits == "32" ? 32 : 64;
  options.libsvm_slots = ValueOf(flags.libsvm_slots, app::kLibsvmSlots);
  options.part = ValueOf(flags.part, app::kDataParts);
  options.check = ValueOf(flags.check, app::kNormChecks);
  if (!flags.separator.empty()) {
    CISTERN_ASSIGN_OR_RETURN(options.separator, CharacterOf("--separator", flags.separator));
  }
  if (!flags.delimiter.empty()) {
    CISTERN_ASSIGN_OR_RETURN(options.delimiter, CharacterOf("--delimiter", flags.delimiter));
  }
  CISTERN_ASSIGN_OR_RETURN(options.label_threshold, ThresholdOf(flags.label_threshold));
  const std::string option = app::OptionBesideRecipe(options);
  if (option.empty()) return options;
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     FlagOf(option),
                     " cannot be combined with --recipe, which defines how the data is encoded")),
                 absl::StrCat("leave out ", FlagOf(option), ", or --recipe"));
}

std::string TextOf(const data::ConvertSummary& summary, const ConvertFlags& flags) {
  std::vector<std::vector<std::string>> rows = {
      {"SLOT", "COLUMN", "KEYS", "MISSING", "RARE", "MOST A SAMPLE"}};
  for (size_t i = 0; i < summary.slots.size(); ++i) {
    const data::ConvertSummary::Slot& slot = summary.slots[i];
    rows.push_back({absl::StrCat(i), slot.column,
                    absl::StrCat(slot.distinct, slot.distinct_exact ? "" : " (estimate)"),
                    absl::StrCat(slot.missing), absl::StrCat(slot.rare),
                    absl::StrCat(slot.max_keys)});
  }
  return absl::StrCat(
      AlignedText(rows), "\n", summary.samples, " samples (", summary.positives, " positive) in ",
      summary.files, summary.files == 1 ? " file, " : " files, ", BytesText(summary.bytes), ": ",
      summary.file_list, "\n", "in the model file: \"source\": \"", summary.file_list,
      "\", \"check\": \"", flags.check == "none" ? "None" : "Sum",
      "\", \"label_dim\": ", app::LabelDimOf(summary), ", \"dense_dim\": ", summary.shape.dense_dim,
      ", \"slot_num\": ", summary.slots.size(),
      ", \"max_feature_num_per_sample\": ", summary.max_keys,
      ", and in its solver \"input_key_type\": \"I", summary.key_bits, "\"",
      summary.shape.weighted ? ", and in its cistern object \"sample_weights\": true" : "",
      summary.shape.key_weights.empty()
          ? ""
          : ", and in its cistern object \"key_weights\": [the top of the sparse input]",
      flags.options.negative_rate < 1
          ? absl::StrCat(
                ", and in its cistern object \"negative_rate\": ", flags.options.negative_rate,
                " (", summary.left_out, " negative rows are left out)")
          : "",
      "\n", "for other data of this model: cistern data convert --recipe ", summary.recipe, "\n");
}

// "writing  42%  1.20M rows". Shown on a terminal only.
std::string ProgressLine(const data::ConvertProgress& progress) {
  std::string line = absl::StrCat(progress.stage, "  ");
  if (progress.bytes_total > 0) {
    absl::StrAppendFormat(&line, "%3.0f%%  ", 100.0 * progress.bytes / progress.bytes_total);
  }
  return absl::StrCat(line, CountText(static_cast<double>(progress.rows)), " rows");
}

absl::StatusOr<Report> RunConvert(const ConvertFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const app::ConvertDataOptions options, ConvertOptionsOf(flags));
  app::JobCalls calls;
  calls.note = NotesOn(console);
  calls.stop = CatchInterrupts();
  const absl::StatusOr<data::ConvertSummary> summary =
      app::ConvertData(options, calls, [&](const data::ConvertProgress& progress) {
        console.Update(ProgressLine(progress));
        return true;
      });
  console.Update("");
  if (!summary.ok()) return summary.status();
  for (const std::string& column : summary->number_slots) {
    console.Say(absl::StrCat("note: slot '", column,
                             "' holds numbers with a fraction, each a key of "
                             "its own: --dense ",
                             column, " makes it a dense feature, --bucket ", column,
                             " a slot of ranges"));
  }
  return Report{app::JsonOf(*summary), TextOf(*summary, flags), absl::OkStatus()};
}

void AddInputFlags(Command& command, ConvertFlags* flags) {
  data::ConvertOptions& options = flags->options;
  command.List("--input", &options.input, true,
               {"FILE,...", "Text files, read in this order; - is standard input.",
                "--input train.csv", kRequired});
  command.Flag(
      "--recipe", &options.recipe,
      {"FILE|DIR",
       "Encodes the data as other data was: the recipe of that data set or run, instead of "
       "the flags below.",
       "--recipe data/train"});
  command.Switch("--extend", &options.extend,
                 {"",
                  "With --recipe: values of this data that occur often enough get keys of their "
                  "own, for a run that continues with it (train --more).",
                  "--recipe runs/a --extend"});
  command.Choice("--format", &flags->format,
                 {ChoiceOf(data::TextFormatWords()), "Format of the text.", "--format criteo"});
  command.Flag("--delimiter", &flags->delimiter,
               {"CHAR", "Field separator; by default ',' for csv, tab for tsv and criteo.",
                "--delimiter ';'"});
  command.List("--columns", &options.columns, true,
               {"NAME,...", "Column names of a file without a header line; C1..C26 is a range.",
                "--columns label,I1..I13,C1..C26"});
  command.List("--add-column", &options.add_columns, true,
               {"COLUMN,...", "Columns that some of the files lack: they are empty there.",
                "--add-column brand"});
  command.Switch("--trim", &options.trim,
                 {"", "Spaces around a field do not count, as in 'a, b'.", "--trim"});
  command.List("--missing-values", &options.missing_values, true,
               {"TEXT,...", "Texts that count as an empty field.", "--missing-values NA"});
  command.Flag(
      "--skip-rows", &options.skip_rows,
      {"INT", "Number of rows to skip first, not counting header lines.", "--skip-rows 60000"});
  command.Flag("--max-rows", &options.max_rows,
               {"INT", "Number of rows to read after those; 0: all.", "--max-rows 20000"});
  command.Choice(
      "--part", &flags->part,
      {"all|train|test",
       "test: a tenth of the rows, by a hash of their numbers; train: the others.", "--part test"});
  command.Choice("--libsvm-slots", &flags->libsvm_slots,
                 {"position|single", "libsvm: token n goes to slot n, or all tokens to one slot.",
                  "--libsvm-slots single"});
  command.Switch(
      "--any-value", &options.any_value,
      {"",
       "libsvm, libffm, vw: accepts and ignores values other than 1; a value of 0 drops the key.",
       "--any-value"});
}

void AddColumnFlags(Command& command, ConvertFlags* flags) {
  data::ConvertOptions& options = flags->options;
  command.List("--label", &options.label, true,
               {"COLUMN,...", "Label columns (csv, tsv).", "--label click"});
  command.Flag("--negative-rate", &flags->options.negative_rate,
               {"NUMBER",
                "Keeps this share of the rows with a negative label, and all others: data to train "
                "on, for a model with cistern.negative_rate.",
                "--negative-rate 0.1"});
  command.Flag("--label-threshold", &flags->label_threshold,
               {"NUMBER", "Labels above this become 1, others 0; by default labels are kept.",
                "--label-threshold 3"});
  command.List(
      "--positive", &options.positive, false,
      {"TEXT", "Labels with this text become 1, others 0; may be repeated.", "--positive '>50K'"});
  command.Flag("--weight", &options.weight,
               {"COLUMN", "The weight of each row, from 0 to 1e9; by default all are 1.",
                "--weight sample_weight"});
  command.List("--dense", &options.dense, true,
               {"COLUMN,...", "Numeric columns.", "--dense I1..I13"});
  command.Choice("--dense-transform", &flags->dense_transform,
                 {"auto|none|log1p|standardize",
                  "log1p: ln(1 + x), or 0 if x < 0; standardize: mean 0 and deviation 1 on this "
                  "data; auto: log1p for criteo.",
                  "--dense-transform log1p"});
  command.List("--log1p", &options.log1p, true,
               {"COLUMN,...",
                "Dense columns whose logarithms, ln(1 + x), take the place of the numbers, "
                "whatever the others have; standardize applies to them.",
                "--log1p price"});
  command.Flag("--dense-missing", &options.dense_missing,
               {"NUMBER", "Value of an empty dense field.", "--dense-missing -1"});
  command.List("--sparse", &options.sparse, true,
               {"COLUMN,...", "One slot each, in this order; by default all remaining columns.",
                "--sparse C1..C26"});
  command.List("--bucket", &options.bucket, true,
               {"COLUMN,...", "Numeric sparse columns to cut into logarithmic buckets.",
                "--bucket I1..I13"});
  command.List("--cross", &options.cross, false,
               {"COLUMN,COLUMN,...",
                "One more slot, whose values are the combinations of these columns' values; may be "
                "repeated.",
                "--cross user,item"});
  command.List("--share", &options.share, false,
               {"COLUMN,COLUMN,...",
                "Slots in which a value is the same thing: one key, and one row of an embedding; "
                "may be repeated.",
                "--share user,friend"});
  command.List(
      "--ignore", &options.ignore, true,
      {"COLUMN,...", "Columns to skip; '*': all columns that no flag names.", "--ignore id,time"});
  command.List("--multi", &options.multi, true,
               {"COLUMN,...", "Sparse columns that hold several values.", "--multi genres"});
  command.List(
      "--key-weights", &options.key_weights, true,
      {"COLUMN,...",
       "Sparse columns of several values, each with a weight that its key keeps: "
       "'a:0.5|b:0.3', or COLUMN=WEIGHTS for a second column of numbers; libsvm, libffm, vw: '*', "
       "the values of all features.",
       "--key-weights tags,genres=genre_shares"});
  command.Flag("--separator", &flags->separator,
               {"CHAR", "Separator of the values in a --multi column.", "--separator '|'"});
}

void AddKeyFlags(Command& command, ConvertFlags* flags) {
  data::ConvertOptions& options = flags->options;
  command.Choice("--keys", &flags->keys,
                 {"auto|raw|hash|signed",
                  "raw: the text is the key; hash: the key is a hash of column and text; signed: "
                  "integers of either sign; auto: raw for libsvm and libffm, else hash.",
                  "--keys hash"});
  command.Choice("--key-bits", &flags->key_bits,
                 {"32|64", "Width of keys: input_key_type I32 or I64.", "--key-bits 32"});
  command.Choice("--missing", &flags->missing,
                 {"none|key", "Sparse fields without a value: no key, or one key per column.",
                  "--missing key"});
  command.Choice("--rare", &flags->rare,
                 {"none|key", "Rare values: no key, or one key per column.", "--rare none"});
  command.Flag("--min-count", &options.min_count,
               {"INT", "Values seen fewer times in their column are rare.", "--min-count 5"});
  command.Flag(
      "--fit-rows", &options.fit_rows,
      {"INT", "Counts values in this many first rows only; 0: in all rows.", "--fit-rows 60000"});
  command.Flag("--vocab-out", &options.vocab_out,
               {"FILE", "Writes the values that are not rare, for --vocab-in on the test data.",
                "--vocab-out vocab.txt"});
  command.Flag(
      "--vocab-in", &options.vocab_in,
      {"FILE", "Reads the values that are not rare from this file.", "--vocab-in vocab.txt"});
}

void AddOutputFlags(Command& command, ConvertFlags* flags) {
  data::ConvertOptions& options = flags->options;
  command.Flag(
      "--out", &options.out,
      {"DIR", "Folder to create: Norm files and file_list.txt. Appears whole or not at all.",
       "--out data/train", kRequired});
  command.Switch("--overwrite", &options.overwrite,
                 {"", "Replaces an existing data set.", "--overwrite"});
  command.Choice("--check", &flags->check,
                 {"sum|none", "sum: adds a check byte to every record.", "--check none"});
  command.Flag("--samples-per-file", &options.samples_per_file,
               {"INT", "Samples per Norm file.", "--samples-per-file 40960"});
}

}  // namespace

void AddConvertCommand(Command& data) {
  auto flags = std::make_shared<ConvertFlags>();
  Command& command =
      data.Add("convert", "Converts CSV, TSV, libsvm or Criteo text into Norm files.",
               "cistern data convert --format criteo --input train.txt --out data/train");
  AddInputFlags(command, flags.get());
  AddColumnFlags(command, flags.get());
  AddKeyFlags(command, flags.get());
  AddOutputFlags(command, flags.get());
  command.Does([flags](Console& console) { return RunConvert(*flags, console); });
}

}  // namespace cistern::cli
