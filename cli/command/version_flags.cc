#include "cli/command/version_flags.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "app/run/run_folder.h"
#include "app/run/run_recipe.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "common/base/names.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern {

ServingOptions VersionFlags::options() const {
  return {out, *PrecisionOf(precision), keep, nullptr, name};  // precision: a Choice flag
}

void AddVersionFlags(Command& command, VersionFlags* flags) {
  command.Flag("--out", &flags->out,
               {"DIR", "The serving folder; its HEAD names the new version when that is complete.",
                "--out serving", kRequired});
  command.Choice("--precision", &flags->precision,
                 {"float32|float16|bfloat16|int8",
                  "How rows are stored; int8: row-wise, with a float16 scale and offset.",
                  "--precision int8"});
  command.Flag("--keep", &flags->keep,
               {"INT", "The number of versions to keep, at least 1.", "--keep 5"});
  command.Flag("--recipe", &flags->recipe,
               {"FILE|DIR",
                "The recipe that encodes rows of text for this model; by default that of its run "
                "folder.",
                "--recipe data/train"});
  command.Flag(
      "--name", &flags->name,
      {"NAME",
       "The name by which clients ask for the model; by default that of the version before, "
       "and in a new folder that of the run or of the model file.",
       "--name ctr"});
}

std::string NameNote(const ServingWritten& written, const std::string& root) {
  const std::string& name = written.version.name;
  if (!written.name_before.empty() && name != written.name_before) {
    return absl::StrCat("the model is called '", name, "' from this version on, not '",
                        written.name_before, "' as before: requests that ask for '",
                        written.name_before,
                        "' are refused, unless cistern serve runs with --name");
  }
  if (name == written.own_name || written.name_before.empty()) return "";
  return absl::StrCat("the model is still called '", name, "', as in the version before in ", root,
                      "; to call it '", written.own_name, "', add --name ", written.own_name);
}

std::string OtherThingIn(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == "LOCK" || name == "BASE_LOCK" || name == "HEAD.tmp" ||
        absl::ascii_isdigit(static_cast<unsigned char>(name[0])))
      continue;
    return name;
  }
  return "";
}

absl::Status CheckServingPlace(const VersionFlags& flags) {
  if (!flags.name.empty()) CISTERN_RETURN_IF_ERROR(AddContext(CheckName(flags.name), "--name"));
  std::error_code error;
  if (std::filesystem::exists(flags.out + "/HEAD", error)) return absl::OkStatus();
  const std::string other = OtherThingIn(flags.out);
  if (other.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat("--out ", flags.out,
                                  ": is not a serving folder (it has no HEAD), and holds "
                                  "other things, such as ",
                                  other)),
                 "name another folder; it is created if missing");
}

absl::StatusOr<ModelText> ReadModelText(const app::ModelOptions& model, const VersionFlags& flags,
                                        const std::string& trained) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(std::string text, ReadWhole(files, model.config, kMostBytes));
  ModelText all = {model.config, std::move(text), model.set};
  const std::filesystem::path path(model.config);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  if (path.filename() == app::kRunModelFile &&
      app::IsRunFolder(folder)) {  // the name of the run says more
    all.name = folder.filename();
  }
  if (!flags.recipe.empty()) {
    CISTERN_ASSIGN_OR_RETURN(all.recipe, ReadRecipe(files, flags.recipe));
  } else if (!trained.empty()) {
    CISTERN_ASSIGN_OR_RETURN(all.recipe, app::RecipeOfModel(trained));
  }
  if (!all.recipe) return all;
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(model));
  CISTERN_RETURN_IF_ERROR(AddContext(
      CheckRecipeShape(all.recipe->recipe, ShapeOf(config.data), config.solver.wide_keys),
      all.recipe->path));
  return all;
}

}  // namespace cistern
