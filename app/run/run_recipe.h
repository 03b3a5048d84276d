// The recipe of the data that a command reads, compared with that of the run or model it applies
// to.
//
// Data without a recipe (HugeCTR's own files) is never refused for that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/model/config/model_config.h"

namespace cistern::app {

// The recipe of the training data of `config`; that of its evaluation data must have the same
// meaning, or be one that it extends. kInvalidArgument names the first difference, with a fix.
absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfTraining(const model::ModelConfig& config);

// The recipe of the stream that `config` trains on, which it then names (StreamConfig::recipe): the
// one it names, that of the run in `out`, or that beside the model's data. nullopt: none of these,
// or it names "none", so the stream holds files of the model's own format.
absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfStream(const std::string& out,
                                                                model::ModelConfig* config);

// kInvalidArgument, with the first difference and a fix, unless data with the recipe `data` can
// continue the run in `out`: it has the run's recipe, or one that extends it.
absl::Status CheckRunRecipe(const std::string& out, const std::optional<data::FoundRecipe>& data);

// The recipe of a trained model: in `dir`, or in the run folder that `dir` is a part of
// (RUN/model, RUN/best, RUN/state, RUN/snapshot-100).
absl::StatusOr<std::optional<data::FoundRecipe>> RecipeOfModel(const std::string& dir);

// kInvalidArgument, with the first difference and a fix, unless all of `sources` (as in
// ReadFileList) were made with the recipe `model`.
absl::Status CheckDataRecipe(const data::FoundRecipe& model,
                             const std::vector<std::string>& sources);

}  // namespace cistern::app
