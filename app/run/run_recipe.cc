#include "app/run/run_recipe.h"

#include "app/run/run_folder.h"

namespace cistern::app {
namespace {

// StreamConfig::recipe of a stream of files of the model's own format.
constexpr char kNoRecipe[] = "none";

// kInvalidArgument, with the fix for data that was converted in another way.
absl::Status Differs(const data::FoundRecipe& data, const data::FoundRecipe& model,
                     const std::string& what) {
  const std::string difference = data::RecipeDifference(data.recipe, model.recipe);
  if (difference.empty()) return absl::OkStatus();
  const absl::Status differs =
      absl::InvalidArgumentError(absl::StrCat(data.path, ": this data was not converted as ", what,
                                              " was (", model.path, "): ", difference));
  return WithFix(WithOptions(differs, {"data.convert.recipe"}),
                 absl::StrCat("convert it again with the recipe ", model.path));
}

}  // namespace

absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfTraining(
    const model::ModelConfig& config) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(std::optional<data::FoundRecipe> training,
                           data::RecipeOfSource(files, config.data.source));
  if (!training || config.data.eval_source.empty()) return training;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> evaluation,
                           data::RecipeOfSource(files, config.data.eval_source));
  if (evaluation && !data::Extends(training->recipe, evaluation->recipe)) {
    CISTERN_RETURN_IF_ERROR(Differs(*evaluation, *training, "the training data"));
  }
  return training;
}

absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfStream(const std::string& out,
                                                                model::ModelConfig* config) {
  LocalFileSystem files;
  model::StreamConfig& stream = *config->cistern.stream;
  std::optional<data::FoundRecipe> found;
  if (stream.recipe == kNoRecipe) {
    stream.recipe.clear();
    return found;
  }
  if (!stream.recipe.empty()) {
    CISTERN_ASSIGN_OR_RETURN(found, data::ReadRecipe(files, stream.recipe));
    return found;
  }
  CISTERN_ASSIGN_OR_RETURN(found, data::FindRecipe(files, out));
  if (!found) {
    CISTERN_ASSIGN_OR_RETURN(found, data::RecipeOfSource(files, config->data.source));
  }
  if (found) stream.recipe = found->path;
  return found;
}

absl::Status CheckRunRecipe(const std::string& out, const std::optional<data::FoundRecipe>& data) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> run,
                           data::FindRecipe(files, out));
  if (!run || !data || data::Extends(data->recipe, run->recipe)) return absl::OkStatus();
  return Differs(*data, *run, "that of the run to resume");
}

absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfModel(const std::string& dir) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(std::optional<data::FoundRecipe> found, data::FindRecipe(files, dir));
  if (found) return found;
  return data::FindRecipe(files, RunOf(dir));
}

absl::Status CheckDataRecipe(const data::FoundRecipe& model,
                             const std::vector<std::string>& sources) {
  LocalFileSystem files;
  for (const std::string& source : sources) {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> data,
                             data::RecipeOfSource(files, source));
    if (!data) continue;
    CISTERN_RETURN_IF_ERROR(Differs(*data, model, "the training data of the model"));
  }
  return absl::OkStatus();
}

}  // namespace cistern::app
