// From the options of a conversion to its files and its recipe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/text_table.h"
#include "worker/data/recipe/vocabulary.h"

namespace cistern::data {

// The recipe of a conversion, without what is counted: vocabulary, means and deviations.
Recipe RecipeOf(const ConvertOptions& options, const ColumnPlan& plan,
                const std::vector<std::string>& columns);

// Looks at the first rows of `table` for how the numbers of dense features and buckets are written,
// skipping texts that mean a missing number. Adds to `recipe` each form that is not plain, and
// returns a sentence about each.
std::vector<std::string> FindNumbers(TextTable* table, Recipe* recipe);

// Columns of lists hold several values without being named by --multi. kInvalidArgument: such a
// column has a role that takes one value.
absl::Status TakeLists(const TextTable& table, ConvertOptions* options);

// Replaces the input by its files, and sets the columns that the names of folders stand for.
absl::Status ExpandInput(ConvertOptions* options);

// Opens a file of the input, without a recipe. columns: of the files before; empty for the first.
// members: of the files of the input that are JSON Lines.
absl::StatusOr<std::unique_ptr<TextTable>> OpenInput(const ConvertOptions& options,
                                                     const std::vector<std::string>& columns,
                                                     const JsonColumns& members,
                                                     const std::string& path);

// Writes counts of rare values, unless `path` is empty. Of very many, the rarest are forgotten.
absl::Status WriteRare(FileSystem& files, const std::string& path, Vocabulary* rare);

}  // namespace cistern::data
