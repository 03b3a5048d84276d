#include "cli/command/commands.h"

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "app/data/table_file.h"
#include "app/run/run_folder.h"
#include "cli/command/table_flags.h"
#include "cli/terminal/exit_code.h"

namespace cistern::cli {
namespace {

struct InitFlags {
  std::string table, out = ".";
  std::vector<std::string> more;  // further files of the table
  TableModelFlags flags;
  bool overwrite = false;
};

// A word as a shell takes it.
std::string ShellWord(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("/._-,=:+%@", static_cast<char>(c));
  });
  return plain && !word.empty()
             ? word
             : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// The flags that change what is made of the table.
std::string TableFlagsText(const TableModelFlags& flags) {
  std::string text;
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&text, " ", flag, " ", ShellWord(value));
  };
  const app::TableOptions& options = flags.options;
  const data::TableWishes& wishes = options.wishes;
  add("--label", wishes.label);
  for (const std::string& positive : wishes.positive) add("--positive", positive);
  add("--label-threshold", flags.label_threshold);
  add("--weight", wishes.weight);
  add("--dense", absl::StrJoin(wishes.dense, ","));
  add("--sparse", absl::StrJoin(wishes.sparse, ","));
  add("--ignore", absl::StrJoin(wishes.ignore, ","));
  for (const std::string& cross : wishes.cross) add("--cross", cross);
  for (const std::string& share : wishes.share) add("--share", share);
  add("--multi", absl::StrJoin(wishes.multi, ","));
  add("--key-weights", absl::StrJoin(wishes.key_weights, ","));
  add("--separator", flags.separator);
  add("--delimiter", flags.delimiter);
  add("--columns", absl::StrJoin(options.columns, ","));
  if (options.negative_rate != 0) {
    add("--negative-rate", absl::StrCat(options.negative_rate));
  }
  if (wishes.min_count > 0) add("--min-count", absl::StrCat(wishes.min_count));
  if (options.model != app::TableOptions().model) add("--model", options.model);
  return text;
}

std::string NextSteps(const InitFlags& flags, model::ModelKind kind) {
  const std::string table = ShellWord(flags.table), out = ShellWord(flags.out);
  const double kept = flags.flags.options.kept_negatives();
  const auto convert = [&](const std::string& part) {
    const bool samples = part == "train" && kept < 1;
    return absl::StrCat("  cistern data convert --recipe ", out, " --input ", table, " --part ",
                        part, samples ? absl::StrCat(" --negative-rate ", kept) : "", " --out ",
                        out, "/data/", part, "\n");
  };
  return absl::StrCat("wrote ", flags.out, "/", app::kRunModelFile, " (", Word(kind), ") and ",
                      flags.out, "/", data::kRecipeFile, "\nnext:\n", convert("train"),
                      convert("test"), "  cistern train ", out, "/", app::kRunModelFile, " --out ",
                      out, "/run\nor all in one: cistern train ", table,
                      TableFlagsText(flags.flags), " --out ", out, "/run\n");
}

absl::StatusOr<Report> RunInit(InitFlags flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(flags.table, app::JoinTables(flags.table, flags.more));
  app::InitOptions options;
  options.table = flags.table;
  CISTERN_ASSIGN_OR_RETURN(options.how, TableOptionsOf(flags.flags));
  options.out = flags.out;
  options.overwrite = flags.overwrite;
  const absl::StatusOr<app::InspectedTable> inspected =
      app::InitModel(options, TableCallsOn(console, options.how));
  console.Update("");
  if (!inspected.ok()) return WithTableFix(inspected.status());
  const app::InspectedTable& table = *inspected;
  Report report{app::JsonOf(table), "", absl::OkStatus()};
  report.json["model"] = absl::StrCat(flags.out, "/", app::kRunModelFile);
  report.json["recipe"] = absl::StrCat(flags.out, "/", data::kRecipeFile);
  report.text = absl::StrCat(ColumnsText(table), "\n", table.profile.rows, " rows, ",
                             table.plan.slots, " slots, ", table.plan.dense, " dense features\n",
                             NextSteps(flags, app::KindFor(table, options.how)));
  return report;
}

}  // namespace

void AddInitCommand(Command& root) {
  auto flags = std::make_shared<InitFlags>();
  Command& command =
      root.Add("init", "Inspects a CSV or TSV file, and writes a model file and a recipe for it.",
               "cistern init train.csv --model deepfm --out model");
  command.Argument(
      "TABLE", &flags->table,
      {"FILE", "The training data: CSV, TSV or Parquet, a folder or a pattern of such files.",
       "train.csv", kRequired});
  command.Arguments("FILE", &flags->more,
                    {"FILE", "More files of the table.", "part-1.csv part-2.csv"});
  AddTableModelFlags(command, &flags->flags);
  command.Flag(
      "--out", &flags->out,
      {"DIR", "Folder for model.json and recipe.json, created if missing.", "--out model"});
  command.Switch("--overwrite", &flags->overwrite, {"", "Replaces these files.", "--overwrite"});
  command.Does([flags](Console& console) { return RunInit(*flags, console); });
}

}  // namespace cistern::cli
