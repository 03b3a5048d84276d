#include "cli/command/more_data.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "cli/terminal/exit_code.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern {
namespace {

bool IsText(const std::string& file) {
  for (const char* ending : {".csv", ".tsv", ".csv.gz", ".tsv.gz"}) {
    if (absl::EndsWith(file, ending)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> ConvertMore(const std::string& out, const std::string& file,
                                        uint32_t workers, Console& console) {
  if (!IsText(file)) return file;
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<FoundRecipe> recipe, FindRecipe(files, out));
  const std::string fix =
      absl::StrCat("convert it first: cistern data convert --recipe ... --input ", file);
  if (!recipe) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(
            "--more ", file, ": ", out, " holds no recipe, which says how text is converted")),
        fix);
  }
  if (workers > 1) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat("--more ", file, ": several workers do not convert text")),
                   fix);
  }
  const std::string name = std::filesystem::path(file).filename().string();
  ConvertOptions options;
  options.input = {file};
  options.recipe = recipe->path;
  options.out = absl::StrCat(out, "/more/", name.substr(0, name.find('.')));
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
  return summary->file_list;
}

}  // namespace cistern
