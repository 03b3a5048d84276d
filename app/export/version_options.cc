#include "app/export/version_options.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "app/run/run_folder.h"
#include "app/run/run_recipe.h"
#include "common/base/names.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern::app {

ServingOptions ServingOptionsOf(const VersionOptions& options) {
  return {options.out, options.precision, options.keep, nullptr, options.name};
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

absl::Status CheckServingPlace(const VersionOptions& options) {
  if (!options.name.empty()) {
    CISTERN_RETURN_IF_ERROR(WithOptions(CheckName(options.name), {"name"}));
  }
  std::error_code error;
  if (std::filesystem::exists(options.out + "/HEAD", error)) return absl::OkStatus();
  const std::string other = OtherThingIn(options.out);
  if (other.empty()) return absl::OkStatus();
  return WithFix(
      WithOptions(absl::InvalidArgumentError(absl::StrCat(
                      options.out,
                      " is not a serving folder (it has no HEAD), and holds other things, such as ",
                      other)),
                  {"out"}),
      "name another folder; it is created if missing");
}

absl::StatusOr<ModelText> ReadModelText(const ModelOptions& model, const VersionOptions& options,
                                        const std::string& trained) {
  constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(std::string text, ReadWhole(files, model.config, kMaxBytes));
  ModelText all = {model.config, std::move(text), model.set};
  const std::filesystem::path path(model.config);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  if (path.filename() == kRunModelFile && IsRunFolder(folder)) {
    all.name = folder.filename();  // the name of the run says more
  }
  if (!options.recipe.empty()) {
    CISTERN_ASSIGN_OR_RETURN(all.recipe, data::ReadRecipe(files, options.recipe));
  } else if (!trained.empty()) {
    CISTERN_ASSIGN_OR_RETURN(all.recipe, RecipeOfModel(trained));
  }
  if (!all.recipe) return all;
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(model));
  CISTERN_RETURN_IF_ERROR(
      AddContext(data::CheckRecipeShape(all.recipe->recipe, model::ShapeOf(config.data),
                                        config.solver.wide_keys),
                 all.recipe->path));
  return all;
}

}  // namespace cistern::app
