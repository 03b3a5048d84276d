#include "cli/command/init_command.h"

#include <memory>

#include "cli/command/table_model.h"
#include "cli/session/run_folder.h"
#include "cli/terminal/exit_code.h"

namespace cistern {
namespace {

struct InitFlags {
  std::string table, out = ".";
  TableModelFlags flags;
  bool overwrite = false;
};

absl::Status CheckFolder(const InitFlags& flags) {
  CISTERN_RETURN_IF_ERROR(CheckOutFolder(flags.out));
  CISTERN_RETURN_IF_ERROR(CheckNameForJson("--out", flags.out));
  LocalFileSystem files;
  for (const char* const name : {kRunModelFile, kRecipeFile}) {
    const std::string path = absl::StrCat(flags.out, "/", name);
    CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
    if (!exists || flags.overwrite) continue;
    return WithFix(absl::InvalidArgumentError(absl::StrCat(path, " exists already")),
                   "name another folder (--out DIR), or add --overwrite");
  }
  return absl::OkStatus();
}

std::string NextSteps(const InitFlags& flags) {
  const auto convert = [&](const std::string& part) {
    return absl::StrCat("  cistern data convert --recipe ", flags.out, " --input ", flags.table,
                        " --part ", part, " --out ", flags.out, "/data/", part, "\n");
  };
  const std::string& named = flags.flags.wishes.label;
  const std::string label = named.empty() ? "" : absl::StrCat(" --label '", named, "'");
  return absl::StrCat("wrote ", flags.out, "/", kRunModelFile, " (", flags.flags.model, ") and ",
                      flags.out, "/", kRecipeFile, "\nnext:\n", convert("train"), convert("test"),
                      "  cistern train ", flags.out, "/", kRunModelFile, " --out ", flags.out,
                      "/run\nor all in one: cistern train ", flags.table, label, " --out ",
                      flags.out, "/run\n");
}

absl::StatusOr<Report> RunInit(const InitFlags& flags, Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckFolder(flags));
  CISTERN_ASSIGN_OR_RETURN(const InspectedTable table,
                           InspectTable(flags.table, flags.flags, console));
  CISTERN_RETURN_IF_ERROR(WriteModelOf(table, flags.flags, flags.out, true, console));
  Report report{JsonOf(table), "", absl::OkStatus()};
  report.json["model"] = absl::StrCat(flags.out, "/", kRunModelFile);
  report.json["recipe"] = absl::StrCat(flags.out, "/", kRecipeFile);
  report.text = absl::StrCat(TextOf(table), "\n", table.profile.rows, " rows, ", table.plan.slots,
                             " slots, ", table.plan.dense, " dense features\n", NextSteps(flags));
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
  AddTableModelFlags(command, &flags->flags);
  command.Flag(
      "--out", &flags->out,
      {"DIR", "Folder for model.json and recipe.json, created if missing.", "--out model"});
  command.Switch("--overwrite", &flags->overwrite, {"", "Replaces these files.", "--overwrite"});
  command.Does([flags](Console& console) { return RunInit(*flags, console); });
}

}  // namespace cistern
