#include "cli/command/table_model.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "app/run/run_folder.h"
#include "cli/command/model_size.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "common/base/amount_text.h"
#include "common/io/new_file.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/label_heads.h"
#include "worker/data/prepare/row_overlap.h"
#include "worker/data/prepare/sample_weight.h"
#include "worker/data/prepare/unseen_values.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/utf8_check.h"
#include "worker/data/storage/storage.h"
#include "worker/model/config/model_template.h"

namespace cistern {
namespace {

constexpr uint64_t kRowsLeast = 100;

bool Continues() {
  return !CatchInterrupts()->load();
}

// The next step for an error of the planner.
std::string FixFor(const absl::Status& status) {
  const std::vector<std::string> options = OptionsOf(status);
  if (options == std::vector<std::string>{"positive"}) {
    return "--positive TEXT, for each positive text, or another label: --label COLUMN";
  }
  if (options == std::vector<std::string>{"label_threshold", "positive"}) {
    return "--label-threshold 3, if labels above 3 are positive; or --positive TEXT, for each "
           "positive text; or another label: --label COLUMN";
  }
  if (options == std::vector<std::string>{"label", "positive"}) return "leave out --positive";
  if (options == std::vector<std::string>{"label", "label_threshold"}) {
    return "leave out --label-threshold";
  }
  if (options == std::vector<std::string>{"label"}) return "name it: --label COLUMN";
  return "";
}

absl::Status WithTableFix(absl::Status status) {
  status = MissingIsUsage(status);
  const std::string fix = FixFor(status);
  return fix.empty() ? status : WithFix(status, fix);
}

// Says if a text of the table is not UTF-8.
void NoteEncoding(const TableProfile& profile, Console& console) {
  for (const std::vector<std::string>& row : profile.sample) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].size() >= TableProfile::kSampleText || IsUtf8(row[i])) continue;  // may be cut off
      console.Say(absl::StrCat(
          "note: column '", OneLine(profile.columns[i].name),
          "' holds text that is not UTF-8 (Latin-1?). The same words in UTF-8, in other files or "
          "requests, would have other keys (iconv -f latin1 -t utf8)"));
      return;
    }
  }
}

absl::StatusOr<ConvertSummary> ConvertPart(const std::string& out, const std::string& part,
                                           ConvertOptions options, Console& console) {
  options.recipe = absl::StrCat(out, "/", kRecipeFile);
  options.out = absl::StrCat(out, "/data/", part);
  options.overwrite = true;
  std::error_code error;
  std::filesystem::create_directories(out + "/data", error);  // Convert reports what is wrong
  absl::StatusOr<ConvertSummary> summary = Convert(options, [&](const ConvertProgress& progress) {
    console.Update(absl::StrCat("converting ", part, "  ",
                                CountText(static_cast<double>(progress.rows)), " rows"));
    return Continues();
  });
  console.Update("");
  if (!summary.ok()) return WithTableFix(summary.status());
  return summary;
}

// The text printed before training.
std::string ShortText(const InspectedTable& table) {
  const std::vector<ColumnProfile>& columns = table.profile.columns;
  std::vector<std::string> labels;
  for (const LabelChoice& head : table.plan.heads) {
    labels.push_back(absl::StrCat("'", columns[head.column].name, "'"));
  }
  const std::string label = labels.empty()
                                ? absl::StrCat(" '", columns[table.plan.label.column].name, "'")
                                : absl::StrCat("s ", absl::StrJoin(labels, ", "));
  const std::string weight =
      table.plan.weight ? absl::StrCat("weight '", columns[*table.plan.weight].name, "', ") : "";
  return absl::StrCat("note: label", label, ", ", weight, table.plan.slots, " slots, ",
                      table.plan.dense, " dense features, ", table.profile.rows, " rows\n",
                      TextOf(table));
}

void SayLines(const std::string& text, Console& console) {
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    console.Say(std::string(line));
  }
}

// Removes what an earlier run in the folder counted in later data.
void RemoveRareCounts(const std::string& out) {
  std::error_code error;
  std::vector<std::filesystem::path> counts;
  for (std::filesystem::directory_iterator entry(out + "/more", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".rare") counts.push_back(entry->path());
  }
  for (const std::filesystem::path& path : counts) std::filesystem::remove(path, error);
}

void SaySizes(ModelKind kind, const TemplateSizes& sizes, uint64_t rarer, Console& console) {
  std::string text = absl::StrCat("note: model ", Word(kind), ", batches of ", sizes.batch,
                                  ", at most ", sizes.epochs, " epochs");
  if (rarer < kMinRarerForDeep) {
    absl::StrAppend(&text, "; only ", rarer, " rows have the rarer label, so the model is ",
                    kind == ModelKind::kLr ? "linear" : "small (--model lr may be better)",
                    ", and all epochs are trained");
  } else if (sizes.patience == 0) {
    absl::StrAppend(
        &text, "; only ", rarer, " rows have the rarer label, so ",
        kind == ModelKind::kLr || kind == ModelKind::kFm ? "" : "the network is small, and ",
        "all epochs are trained");
  } else if (!sizes.batch_norm && kind != ModelKind::kLr && kind != ModelKind::kFm) {
    absl::StrAppend(&text, "; no batch norm, because ",
                    rarer < kMinRarerForNorm
                        ? absl::StrCat("only ", rarer, " rows have the rarer label")
                        : "the rows for each value are few");
  }
  console.Say(text);
}

// The rows that are trained, of about this number.
struct TrainedRows {
  uint64_t rows = 0, rarer = 0;  // rarer: those of the rarer label
};
// Of several labels, the one that has most rows of its rarer class: the shared network learns it.
TrainedRows RowsToTrain(const InspectedTable& table, const TableModelFlags& flags) {
  const uint64_t rows = table.profile.rows;
  if (!table.plan.heads.empty()) {
    uint64_t rarer = 0;
    for (const LabelChoice& head : table.plan.heads) {
      rarer = std::max(rarer, RowsOf(table.profile, head).rarer());
    }
    return {rows, rarer};
  }
  const double positives = ShareOfPositives(table.profile, table.plan.label);
  if (flags.kept_negatives() == 1) return {rows, RarerClass(rows, positives)};
  const double kept = positives + (1 - positives) * flags.kept_negatives();
  const uint64_t trained = static_cast<uint64_t>(kept * static_cast<double>(rows));
  return {trained, RarerClass(trained, positives / kept)};
}

// The label that has one class only; null: all have both.
const ConvertSummary::Label* LabelOfOneClass(const ConvertSummary& summary) {
  for (const ConvertSummary::Label& label : summary.labels) {
    if (label.positive == 0 || label.positive == label.known) return &label;
  }
  return nullptr;
}

// The labels in which a purchase without a click, for example, is no more than noise.
absl::Status CheckOrder(const std::string& path, const InspectedTable& table, Console& console) {
  constexpr uint64_t kNoiseOneIn = 20;
  const auto name = [&](const LabelChoice& head) {
    return absl::StrCat("'", table.profile.columns[head.column].name, "'");
  };
  const std::vector<LabelChoice>& heads = table.plan.heads;
  for (size_t i = 1; i < heads.size(); ++i) {
    const BrokenOrder order = OrderOf(table.profile, heads[i - 1], heads[i]);
    if (order.rows == 0) continue;
    const std::string what =
        absl::StrCat("of ", order.of, " sampled rows in which ", name(heads[i]), " is 1, ",
                     name(heads[i - 1]), " is 0 in ", order.rows);
    if (order.rows * kNoiseOneIn <= order.of) {
      console.Say(absl::StrCat("note: ", what, "; esmm predicts ", name(heads[i]), " as a part of ",
                               name(heads[i - 1])));
      continue;
    }
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(
            path, ": esmm predicts labels each of which needs those before it, but ", what)),
        "name the labels in their order, such as --label click,buy, or use --model mmoe");
  }
  return absl::OkStatus();
}

// Whether the kind of model fits the labels.
absl::Status CheckHeads(const std::string& path, const InspectedTable& table,
                        const TableModelFlags& flags, Console& console) {
  const std::vector<LabelChoice>& heads = table.plan.heads;
  const std::optional<ModelKind> kind = ModelKindOf(flags.model);
  if (kind && PredictsSeveral(*kind) != !heads.empty()) {
    return heads.empty()
               ? WithFix(
                     absl::InvalidArgumentError(absl::StrCat(
                         path, ": ", Word(*kind), " predicts several labels, and there is one")),
                     "name them: --label click,buy; or a model of one label: --model deepfm")
               : WithFix(absl::InvalidArgumentError(
                             absl::StrCat(path, ": ", Word(*kind),
                                          " predicts one label, and there are ", heads.size())),
                         "--model mmoe, ple or esmm; or one label: --label click");
  }
  if (!heads.empty() && flags.kept_negatives() < 1) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       path, ": a row is negative by one label, and there are ", heads.size())),
                   "without --negative-rate");
  }
  for (const LabelChoice& head : heads) {
    const HeadRows rows = RowsOf(table.profile, head);
    if (rows.rarer() >= kMinRarerForDeep) continue;
    console.Say(absl::StrCat("note: label '", table.profile.columns[head.column].name, "' is ",
                             2 * rows.positive < rows.known ? "1" : "0", " in ", rows.rarer(),
                             " of ", rows.known, " known rows: its predictions will be rough"));
  }
  return kind == ModelKind::kEsmm ? CheckOrder(path, table, console) : absl::OkStatus();
}

}  // namespace

void AddTableModelFlags(Command& command, TableModelFlags* flags) {
  TableWishes& wishes = flags->wishes;
  command.Flag(
      "--label", &wishes.label,
      {"COLUMN",
       "Table: the label; by default found by its name or its values. Several, for a head each: "
       "--label click,buy.",
       "--label click"});
  command.List(
      "--positive", &wishes.positive, false,
      {"TEXT", "Table: a label with this text is positive; may be repeated.", "--positive '>50K'"});
  command.Flag(
      "--label-threshold", &flags->label_threshold,
      {"NUMBER", "Table: labels above this are positive, such as ratings.", "--label-threshold 3"});
  command.Flag(
      "--weight", &wishes.weight,
      {"COLUMN", "Table: the weight of each row in loss and metrics; by default all are 1.",
       "--weight sample_weight"});
  command.List("--dense", &wishes.dense, true,
               {"COLUMN,...", "Table: numeric columns that are dense features.", "--dense price"});
  command.List("--sparse", &wishes.sparse, true,
               {"COLUMN,...", "Table: columns that are slots.", "--sparse item_id"});
  command.List("--ignore", &wishes.ignore, true,
               {"COLUMN,...", "Table: columns to skip.", "--ignore note"});
  command.List("--cross", &wishes.cross, false,
               {"COLUMN,COLUMN,...",
                "Table: one more slot for the combinations of these columns' values; may be "
                "repeated.",
                "--cross user,item"});
  command.List(
      "--share", &wishes.share, false,
      {"COLUMN,COLUMN,...", "Table: slots in which a value has one embedding; may be repeated.",
       "--share user,friend"});
  command.List(
      "--multi", &wishes.multi, true,
      {"COLUMN,...", "Table: columns that hold several values; by default found by their values.",
       "--multi genres"});
  command.List("--key-weights", &wishes.key_weights, true,
               {"COLUMN,...",
                "Table: columns of several values, each with a weight: 'a:0.5|b:0.3', or "
                "COLUMN=WEIGHTS for a second column of numbers.",
                "--key-weights tags,genres=genre_shares"});
  command.Flag(
      "--separator", &flags->separator,
      {"CHAR", "Table: what separates the values of a --multi column.", "--separator '^'"});
  command.Flag("--delimiter", &flags->delimiter,
               {"CHAR", "Table: what separates its fields; by default found.", "--delimiter ';'"});
  command.List("--columns", &flags->columns, true,
               {"NAME,...", "Table: the names of its columns, if it has no header line.",
                "--columns label,I1..I13,C1..C26"});
  command.Flag("--min-count", &wishes.min_count,
               {"INT",
                "Table: values seen fewer times in their column share one key; 0: chosen by the "
                "number of rows.",
                "--min-count 5"});
  command.Flag("--negative-rate", &flags->negative_rate,
               {"NUMBER",
                "Table: trains on this share of the rows with a negative label, and on all "
                "others; predictions are those for all rows. 0: on all.",
                "--negative-rate 0.1"});
  command.Choice(
      "--model", &flags->model,
      {absl::StrCat("auto|", ModelKindWords()),
       "Table: the kind of model; auto: deepfm, or lr if fewer than 300 rows have the rarer label; "
       "mmoe for several labels, which esmm and ple predict, too.",
       "--model dcnv2"});
}

absl::StatusOr<std::optional<double>> ThresholdOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  double threshold = 0;
  if (absl::SimpleAtod(text, &threshold)) return threshold;
  return absl::InvalidArgumentError(absl::StrCat("--label-threshold '", text, "' is not a number"));
}

absl::StatusOr<std::string> TableOf(const std::string& first,
                                    const std::vector<std::string>& more) {
  std::string files = first;
  for (const std::string& file : more) {
    if (!IsTable(first) || !IsTable(file)) {
      return WithFix(absl::InvalidArgumentError(
                         absl::StrCat("one model file is expected, but ", file, " was given, too")),
                     "several files can only be those of a table (*.csv, *.tsv, *.parquet)");
    }
    if (absl::StrContains(file, ',')) {
      return WithFix(absl::InvalidArgumentError(
                         absl::StrCat(file, ": the comma separates the files of a table")),
                     "rename the file, or put the files into a folder and name that");
    }
    absl::StrAppend(&files, ",", file);
  }
  return files;
}

absl::StatusOr<char> CharacterOf(const char* flag, const std::string& word) {
  if (word.empty()) return '\0';
  if (word == "tab" || word == "\\t") return '\t';
  if (word == "space") return ' ';
  int code = 0;
  if (word.size() == 4 && absl::StartsWith(word, "\\x") &&
      absl::SimpleHexAtoi(word.substr(2), &code) && code > 0) {
    return static_cast<char>(code);
  }
  if (word.size() == 1) return word.front();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " '", word, "': expected one character, tab, space, or a code such as \\x01"));
}

std::string GivenTableFlag(const TableModelFlags& flags) {
  const TableWishes& wishes = flags.wishes;
  const std::pair<const char*, bool> given[] = {
      {"--label", !wishes.label.empty()},
      {"--positive", !wishes.positive.empty()},
      {"--label-threshold", !flags.label_threshold.empty()},
      {"--weight", !wishes.weight.empty()},
      {"--dense", !wishes.dense.empty()},
      {"--sparse", !wishes.sparse.empty()},
      {"--ignore", !wishes.ignore.empty()},
      {"--cross", !wishes.cross.empty()},
      {"--share", !wishes.share.empty()},
      {"--multi", !wishes.multi.empty()},
      {"--key-weights", !wishes.key_weights.empty()},
      {"--separator", !flags.separator.empty()},
      {"--delimiter", !flags.delimiter.empty()},
      {"--columns", !flags.columns.empty()},
      {"--min-count", wishes.min_count > 0},
      {"--negative-rate", flags.negative_rate != 0},
      {"--model", flags.model != TableModelFlags().model},
      {"--valid", !flags.valid.empty()},
      {"--test", !flags.test.empty()}};
  for (const auto& [flag, is_given] : given) {
    if (is_given) return flag;
  }
  return "";
}

namespace {

// Whether a file whose ending names no format holds a table: columns of text, or an object a line.
// A file list has lines of one field.
bool HoldsTable(const std::string& path) {
  constexpr absl::string_view kEndings[] = {"", ".txt", ".data", ".dat", ".tab", ".psv"};
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string ending =
      absl::AsciiStrToLower(std::filesystem::path(path).extension().string());
  // What an array of rows lacks is said where tables are read; no model file is an array.
  if (ending == ".json") return IsJsonLines(path) || IsJsonArray(path);
  return std::count(std::begin(kEndings), std::end(kEndings), ending) > 0 &&
         FindLayout(path, {}).ok();
}

}  // namespace

bool IsTable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const absl::StatusOr<std::vector<std::string>> files = TableFiles(path);
    return !app::IsRunFolder(path) && files.ok() && IsTable(files->front());
  }
  if (!std::filesystem::exists(path, error) && IsPattern(path)) {
    const absl::StatusOr<std::vector<std::string>> files = TableFiles(path);
    return files.ok() && IsTable(files->front());
  }
  if (absl::EndsWithIgnoreCase(path, ".parquet")) return true;
  // Of those that are not unpacked, the reader's error says so.
  for (const char* compression : {"", ".gz", ".zst", ".xz", ".bz2", ".zip"}) {
    for (const char* ending : {".csv", ".tsv", ".jsonl", ".ndjson"}) {
      if (absl::EndsWithIgnoreCase(path, absl::StrCat(ending, compression))) return true;
    }
  }
  return HoldsTable(path);
}

absl::StatusOr<InspectedTable> InspectTable(const std::string& path, const TableModelFlags& flags,
                                            Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckNegativeRate(flags.kept_negatives()));
  InspectedTable table;
  TableWishes wishes = flags.wishes;
  LayoutWishes how;
  CISTERN_ASSIGN_OR_RETURN(wishes.separator, CharacterOf("--separator", flags.separator));
  CISTERN_ASSIGN_OR_RETURN(how.delimiter, CharacterOf("--delimiter", flags.delimiter));
  CISTERN_ASSIGN_OR_RETURN(wishes.label_threshold, ThresholdOf(flags.label_threshold));
  absl::StatusOr<std::vector<std::string>> columns = ExpandColumns(flags.columns);
  if (!columns.ok()) return AddContext(columns.status(), "--columns");
  how.columns = *std::move(columns);
  how.mentions = LabelNames({}, wishes.label);
  if (how.mentions.size() > 1) how.mentions.push_back(wishes.label);
  if (!wishes.weight.empty()) how.mentions.push_back(wishes.weight);
  for (const auto* const names : {&wishes.dense, &wishes.sparse, &wishes.ignore, &wishes.multi}) {
    how.mentions.insert(how.mentions.end(), names->begin(), names->end());
  }
  for (const std::string& given : wishes.key_weights) {
    const auto [values, weights] = KeyWeightColumns(given);
    how.mentions.push_back(values);
    if (!weights.empty()) how.mentions.push_back(weights);
  }
  const absl::StatusOr<TableLayout> layout = FindLayout(path, how);
  if (!layout.ok()) return WithTableFix(layout.status());
  absl::StatusOr<TableProfile> profile = ProfileTable(path, *layout, [&](uint64_t rows, uint64_t) {
    console.Update(absl::StrCat("inspecting  ", CountText(static_cast<double>(rows)), " rows"));
    return Continues();
  });
  console.Update("");
  if (!profile.ok()) return WithTableFix(profile.status());
  table.profile = *std::move(profile);
  NoteEncoding(table.profile, console);
  absl::StatusOr<TablePlan> plan = PlanTable(table.profile, wishes);
  if (!plan.ok()) return WithTableFix(plan.status());
  table.plan = *std::move(plan);
  CISTERN_RETURN_IF_ERROR(CheckHeads(path, table, flags, console));
  return table;
}

ModelKind KindFor(const InspectedTable& table, const TableModelFlags& flags) {
  const std::optional<ModelKind> named = ModelKindOf(flags.model);
  if (named) return *named;
  if (!table.plan.heads.empty()) return ModelKind::kMmoe;
  return RowsToTrain(table, flags).rarer < kMinRarerForDeep ? ModelKind::kLr : ModelKind::kDeepFm;
}

absl::Status WriteModelOf(const InspectedTable& table, const TableModelFlags& flags,
                          const std::string& out, bool evaluates, Console& console) {
  CISTERN_RETURN_IF_ERROR(app::CheckNameForJson("--out", out));
  TemplateData data;
  data.source = out + "/data/train/file_list.txt";
  if (evaluates) data.eval_source = out + "/data/test/file_list.txt";
  data.dense_dim = static_cast<uint32_t>(table.plan.dense);
  data.slot_num = static_cast<uint32_t>(table.plan.slots);
  data.several_values = table.plan.several_values;
  data.positives = ShareOfPositives(table.profile, table.plan.label);
  for (const LabelChoice& head : table.plan.heads) {
    data.heads.push_back(
        {table.profile.columns[head.column].name, RowsOf(table.profile, head).share()});
  }
  data.negative_rate = flags.kept_negatives();
  const auto [rows, rarer] = RowsToTrain(table, flags);
  if (table.plan.weight) {
    data.weighted = true;
    data.positives = WeightedShareOfPositives(table.profile, table.plan.label, *table.plan.weight);
  }
  data.key_weights = !table.plan.options.key_weights.empty();
  const ModelKind kind = KindFor(table, flags);
  const TemplateSizes sizes = SizesFor(kind, rows, table.plan.values, rarer);
  CISTERN_RETURN_IF_ERROR(CheckModelSize(kind, sizes, data));
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(out));
  ConvertOptions options = table.plan.options;
  options.out = out;
  options.rare_out = absl::StrCat(out, "/", kRareFile);
  options.negative_rate = data.negative_rate;
  RemoveRareCounts(out);
  if (flags.evaluation().empty()) {
    options.select = [&table](uint64_t row, const std::vector<absl::string_view>& fields) {
      return !table.plan.held_out.Contains(row, fields);
    };
  }
  const absl::StatusOr<Recipe> recipe = FitRecipe(options, [&](const ConvertProgress& progress) {
    console.Update(
        absl::StrCat("counting values  ", CountText(static_cast<double>(progress.rows)), " rows"));
    return Continues();
  });
  console.Update("");
  CISTERN_RETURN_IF_ERROR(WithTableFix(recipe.status()));
  SaySizes(kind, sizes, rarer, console);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file,
                           NewFile::Create(files, absl::StrCat(out, "/", app::kRunModelFile)));
  CISTERN_RETURN_IF_ERROR(file->Append(ModelTemplateText(kind, data, sizes)));
  return file->Close();
}

absl::StatusOr<std::string> MakeModel(const std::string& path, const TableModelFlags& flags,
                                      const std::string& out, Console& console,
                                      std::vector<std::string>* warnings) {
  CISTERN_RETURN_IF_ERROR(app::CheckNameForJson("--out", out));
  CISTERN_ASSIGN_OR_RETURN(const InspectedTable table, InspectTable(path, flags, console));
  if (table.profile.rows < kRowsLeast) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(path, ": ", table.profile.rows,
                                                           " rows are too few to train a model")),
                   absl::StrCat("train on ", kRowsLeast, " rows or more"));
  }
  SayLines(ShortText(table), console);
  CISTERN_RETURN_IF_ERROR(WriteModelOf(table, flags, out, true, console));
  ConvertOptions training, test;
  training.input = {path};
  training.negative_rate = flags.kept_negatives();
  const std::string& named = flags.evaluation();
  test.input = {named.empty() ? path : named};
  RowOverlap overlap;
  if (!named.empty()) {
    training.select = [&](uint64_t, const std::vector<absl::string_view>& fields) {
      overlap.AddTraining(fields);
      return true;
    };
    test.select = [&](uint64_t, const std::vector<absl::string_view>& fields) {
      overlap.AddEvaluation(fields);
      return true;
    };
  } else {
    const HeldOutRows& held_out = table.plan.held_out;
    training.select = [&](uint64_t row, const std::vector<absl::string_view>& fields) {
      return !held_out.Contains(row, fields);
    };
    test.select = [&](uint64_t row, const std::vector<absl::string_view>& fields) {
      return held_out.Contains(row, fields);
    };
  }
  CISTERN_ASSIGN_OR_RETURN(const ConvertSummary trained,
                           ConvertPart(out, "train", training, console));
  CISTERN_ASSIGN_OR_RETURN(const ConvertSummary tested, ConvertPart(out, "test", test, console));
  for (const ConvertSummary* part : {&trained, &tested}) {
    const ConvertSummary::Label* const label = LabelOfOneClass(*part);
    if (label == nullptr) continue;
    const std::string of =
        table.plan.heads.empty()
            ? ""
            : absl::StrCat(
                  " of label '",
                  table.profile.columns[table.plan.heads[label - part->labels.data()].column].name,
                  "'");
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       part == &trained ? path : test.input[0], ": the ",
                       part == &trained ? "training" : "evaluation", " part has ", label->positive,
                       " positive rows", of, " of ", label->known, ": both classes are needed")),
                   named.empty() ? "use more rows, or name the evaluation data with --valid FILE"
                                 : "check the column of the label in this file, or name one with "
                                   "more rows");
  }
  *warnings = UnseenValues(tested, &trained);
  const std::string both = overlap.Warning();
  if (!both.empty()) warnings->push_back(both);
  const std::string left_out =
      trained.left_out == 0 ? ""
                            : absl::StrCat(" (", trained.left_out, " negative ones are left out)");
  console.Say(absl::StrCat("note: ", trained.samples, " rows to train on", left_out, ", ",
                           tested.samples, " ",
                           !named.empty()                    ? absl::StrCat("of ", named)
                           : table.plan.held_out.time_column ? "later ones held out"
                                                             : "held out",
                           "; data and model are in ", out));
  if (!flags.final_test().empty()) {
    ConvertOptions last;
    last.input = {flags.final_test()};
    CISTERN_RETURN_IF_ERROR(ConvertPart(out, kFinalTest, last, console).status());
  } else if (!flags.test.empty()) {
    console.Say(absl::StrCat("note: --test ", flags.test,
                             " chooses the epoch, as --valid does, so its score is a little too "
                             "good; --valid FILE beside --test leaves it untouched until the end"));
  }
  return absl::StrCat(out, "/", app::kRunModelFile);
}

}  // namespace cistern
