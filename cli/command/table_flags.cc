#include "cli/command/table_flags.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/command/job_console.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "common/manual/manual.h"

namespace cistern::cli {
namespace {

// The text printed before training.
std::string SummaryText(const app::InspectedTable& table) {
  const std::vector<data::ColumnProfile>& columns = table.profile.columns;
  std::vector<std::string> labels;
  for (const data::LabelChoice& head : table.plan.heads) {
    labels.push_back(absl::StrCat("'", columns[head.column].name, "'"));
  }
  const std::string label = labels.empty()
                                ? absl::StrCat(" '", columns[table.plan.label.column].name, "'")
                                : absl::StrCat("s ", absl::StrJoin(labels, ", "));
  const std::string weight =
      table.plan.weight ? absl::StrCat("weight '", columns[*table.plan.weight].name, "', ") : "";
  return absl::StrCat("note: label", label, ", ", weight, table.plan.slots, " slots, ",
                      table.plan.dense, " dense features, ", table.profile.rows, " rows\n",
                      ColumnsText(table));
}

// How an error of app/data is worded with flags, by its options.
struct FlagWords {
  std::vector<std::string> options;
  const char* fix;               // what to type; "": as the error has it
  const char* before = nullptr;  // begins the message, in place of the options at its end
};

const std::vector<FlagWords>& Wordings() {
  static const auto* const wordings = new std::vector<FlagWords>{
      {{"positive"}, "--positive TEXT, for each positive text, or another label: --label COLUMN"},
      {{"label", "positive"}, "leave out --positive"},
      {{"label", "label_threshold"}, "leave out --label-threshold"},
      {{"label"}, "name it: --label COLUMN"},
      {{"label", "model"},
       "name them: --label click,buy; or a model of one label: --model deepfm",
       ""},
      {{"model", "label"}, "--model mmoe, ple or esmm; or one label: --label click", ""},
      {{"label", "model=mmoe"},
       "name the labels in their order, such as --label click,buy, or use --model mmoe",
       ""},
      {{"negative_rate", "label"}, "without --negative-rate", ""},
      {{"model", "ignore"},
       "--model dcn or --model deepfm, or fewer columns: --ignore COLUMN,...",
       ""},
      {{"overwrite", "out"}, "name another folder (--out DIR), or add --overwrite", ""},
      {{"columns"}, "", "--columns: "},
      {{"valid"}, "use more rows, or name the evaluation data with --valid FILE", ""},
      {{"more"}, "", "--more: "},
      {{"more", "label"},
       "check the column of the label; if the data is right, give it together with that of other "
       "days: --more FILE,FILE",
       "--more "},
      {{"more", "valid"}, "", "--valid "},
      {{"more", "data.convert.recipe"},
       "convert it first: cistern data convert --recipe ... --extend --input FILE",
       "--more "},
      {{"more", "add_column"},
       "cistern train TABLES_SO_FAR FILE --add-column COLUMN --out NEW",
       "--add-column: "},
      {{"negative_rate", "more"},
       "leave it out; to train on fewer, start a new run: cistern train TABLE --negative-rate "
       "NUMBER",
       "--negative-rate "}};
  return *wordings;
}

// The files of a new run, earlier ones first, as they are typed.
std::string TablesText(const app::OtherColumns& others) {
  constexpr size_t kMaxNamed = 4;
  std::vector<std::string> words;
  if (others.earlier.empty() || others.earlier.size() > kMaxNamed) {
    words.push_back("TABLES_SO_FAR");
  } else {
    for (const std::string& file : others.earlier) words.push_back(ShellQuoted(file));
  }
  words.push_back(ShellQuoted(others.file));
  return absl::StrJoin(words, " ");
}

// The error with a message in terms of flags. It names no options, since printing would append
// them.
absl::Status Reworded(const absl::Status& status, absl::string_view before, absl::string_view fix) {
  return WithFix(WithOptions(WithMessage(status, absl::StrCat(before, status.message())), {}), fix);
}

}  // namespace

void AddTableModelFlags(Command& command, TableModelFlags* flags) {
  app::TableOptions& options = flags->options;
  data::TableWishes& wishes = options.wishes;
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
  command.Flag(
      "--delimiter", &flags->delimiter,
      {"CHAR", "Table, --more: what separates its fields; by default found.", "--delimiter ';'"});
  command.List("--columns", &options.columns, true,
               {"NAME,...", "Table, --more: the names of its columns, if it has no header line.",
                "--columns label,I1..I13,C1..C26"});
  command.List("--add-column", &options.add_columns, true,
               {"COLUMN,...",
                "Table, --more: columns that some of the files lack, such as new ones of a later "
                "day; they are empty there.",
                "--add-column brand"});
  command.Flag("--min-count", &wishes.min_count,
               {"INT",
                "Table: values seen fewer times in their column share one key; 0: chosen by the "
                "number of rows.",
                "--min-count 5"});
  command.Flag("--negative-rate", &options.negative_rate,
               {"NUMBER",
                "Table: trains on this share of the rows with a negative label, and on all "
                "others; predictions are those for all rows. 0: on all.",
                "--negative-rate 0.1"});
  command.Choice(
      "--model", &options.model,
      {absl::StrCat("auto|", model::ModelKindWords()),
       "Table: the kind of model; auto: deepfm, or lr if fewer than 300 rows have the rarer label; "
       "mmoe for several labels, which esmm and ple predict, too.",
       "--model dcnv2"});
}

absl::StatusOr<app::TableOptions> TableOptionsOf(const TableModelFlags& flags) {
  app::TableOptions options = flags.options;
  CISTERN_ASSIGN_OR_RETURN(options.wishes.separator, CharacterOf("--separator", flags.separator));
  CISTERN_ASSIGN_OR_RETURN(options.delimiter, CharacterOf("--delimiter", flags.delimiter));
  CISTERN_ASSIGN_OR_RETURN(options.wishes.label_threshold, ThresholdOf(flags.label_threshold));
  return options;
}

absl::StatusOr<char> CharacterOf(const char* flag, const std::string& word) {
  const absl::StatusOr<char> character = app::ParseCharacter(word);
  if (character.ok()) return character;
  return WithMessage(character.status(), absl::StrCat(flag, " ", character.status().message()));
}

absl::StatusOr<std::optional<double>> ThresholdOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  double threshold = 0;
  if (absl::SimpleAtod(text, &threshold)) return threshold;
  return absl::InvalidArgumentError(absl::StrCat("--label-threshold '", text, "' is not a number"));
}

absl::Status CheckNoTableFlag(const std::string& option, const std::string& path,
                              const std::string& what) {
  if (option.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     FlagOf(option), " is for a table (*.csv, *.tsv), but ", path, " is ", what)),
                 absl::StrCat("leave out ", FlagOf(option)));
}

absl::Status WithTableFix(const absl::Status& status) {
  const std::vector<std::string> options = OptionsOf(status);
  for (const FlagWords& words : Wordings()) {
    if (words.options != options) continue;
    return words.before == nullptr ? WithFix(status, words.fix)
                                   : Reworded(status, words.before, words.fix);
  }
  constexpr absl::string_view kThreshold = "label_threshold=", kRate = "negative_rate=";
  if (options.size() != 2) return status;
  if (absl::StartsWith(options[0], kThreshold)) {
    const absl::string_view number = absl::string_view(options[0]).substr(kThreshold.size());
    return WithFix(status,
                   absl::StrCat("--label-threshold ", number, ", if labels above ", number,
                                " are positive; or --positive TEXT, for each positive text; "
                                "or another label: --label COLUMN"));
  }
  if (!absl::StartsWith(options[1], kRate)) return status;
  return Reworded(status, "--more ",
                  absl::StrCat("add --negative-rate ", options[1].substr(kRate.size()),
                               " to leave out the others, or --negative-rate 1 if the file holds "
                               "no more"));
}

app::TableCalls TableCallsOn(Console& console, const app::TableOptions& options) {
  app::TableCalls calls;
  static_cast<app::JobCalls&>(calls) = RowCallsOn(console);
  calls.inspected = [&console, options](const app::InspectedTable& table) {
    for (const absl::string_view line :
         absl::StrSplit(SummaryText(table), '\n', absl::SkipEmpty())) {
      console.Say(std::string(line));
    }
    if (options.test.empty() || !options.valid.empty()) return;
    console.Say(absl::StrCat("note: --test ", options.test,
                             " chooses the epoch, as --valid does, so its score is a little too "
                             "good; --valid FILE beside --test leaves it untouched until the end"));
  };
  calls.other_columns = [&console](const app::OtherColumns& others) {
    console.Say(absl::StrCat(
        "note: ", others.file,
        " has columns that the first table did not have: ", absl::StrJoin(others.columns, ", "),
        ". This model does not read them: its network has no inputs for them, and one with more "
        "inputs begins anew. To use them, train on all tables: cistern train ",
        TablesText(others), " --add-column ", ShellQuoted(absl::StrJoin(others.columns, ",")),
        " --out NEW"));
  };
  return calls;
}

std::string ColumnsText(const app::InspectedTable& table) {
  std::vector<std::vector<std::string>> rows = {
      {"COLUMN", "TYPE", "DISTINCT", "MISSING", "ROLE", "NOTE"}};
  for (size_t i = 0; i < table.profile.columns.size(); ++i) {
    const data::ColumnProfile& column = table.profile.columns[i];
    const data::ColumnChoice& choice = table.plan.columns[i];
    rows.push_back({OneLine(column.name), Word(column.type),
                    absl::StrCat(column.distinct_exact ? "" : "~", column.distinct),
                    absl::StrCat(column.missing), Word(choice.role), OneLine(choice.note)});
  }
  return AlignedText(rows);
}

}  // namespace cistern::cli
