#include "cli/command/more_data.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "cli/command/table_model.h"
#include "cli/terminal/exit_code.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern {
namespace {

// A name below OUT/more that this command has not used yet: files of several folders can
// have the same name.
std::string PlaceFor(const std::string& out, const std::string& file,
                     const std::vector<std::string>& taken) {
  std::filesystem::path path(file);
  if (path.filename().empty()) path = path.parent_path();  // a folder, after a slash
  std::string name = path.filename().string();
  name = absl::StrCat(out, "/more/", name.substr(0, name.find('.')));
  const auto is_taken = [&](const std::string& place) {
    return std::find(taken.begin(), taken.end(), place + "/file_list.txt") != taken.end();
  };
  std::string place = name;
  for (int i = 2; is_taken(place); ++i) place = absl::StrCat(name, "-", i);
  return place;
}

}  // namespace

absl::StatusOr<MoreData> ConvertMore(const std::string& out, const std::string& file,
                                     const std::vector<std::string>& taken, uint32_t workers,
                                     Console& console) {
  if (!IsTable(file)) return MoreData{file};
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<FoundRecipe> recipe, FindRecipe(files, out));
  // Without a recipe, Parquet is data of a model that reads it ("format": "Parquet").
  if (!recipe && absl::EndsWithIgnoreCase(file, ".parquet")) return MoreData{file};
  const std::string fix =
      absl::StrCat("convert it first: cistern data convert --recipe ... --input ", file);
  if (!recipe) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(
            "--more ", file, ": ", out, " holds no recipe, which says how text is converted")),
        fix);
  }
  if (workers > 1) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       "--more ", file, ": text cannot be converted by several workers")),
                   fix);
  }
  ConvertOptions options;
  options.input = {file};
  options.recipe = recipe->path;
  options.out = PlaceFor(out, file, taken);
  options.overwrite = true;
  std::error_code error;
  std::filesystem::create_directories(out + "/more", error);  // Convert reports what is wrong
  const absl::StatusOr<ConvertSummary> summary = Convert(options);
  if (absl::IsNotFound(summary.status())) {
    return absl::InvalidArgumentError(absl::StrCat("--more: ", summary.status().message()));
  }
  CISTERN_RETURN_IF_ERROR(summary.status());
  console.Say(absl::StrCat("note: converted ", file, " to ", options.out, ": ", summary->samples,
                           " samples"));
  return MoreData{summary->file_list, summary->max_keys};
}

}  // namespace cistern
