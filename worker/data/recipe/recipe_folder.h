// The recipe in a folder: beside a data set, in a run folder, in a version for serving.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/recipe/recipe.h"
#include "worker/data/recipe/row_encoder.h"
#include "worker/data/recipe/vocabulary.h"

namespace cistern::data {

struct FoundRecipe {
  std::string path;  // of its file
  Recipe recipe;
  // Empty without a vocabulary. vocabulary.txt, unless a change of it (ReplaceRecipe) was cut off.
  std::string vocabulary_path() const;
};

// Reads the recipe of a folder, or the file itself; the vocabulary is not read. nullopt: the folder
// has none. kDataLoss: it is damaged.
absl::StatusOr<std::optional<FoundRecipe>> FindRecipe(FileSystem& files, const std::string& path);
// The same for a recipe that must be there: kInvalidArgument if it is not.
absl::StatusOr<FoundRecipe> ReadRecipe(FileSystem& files, const std::string& path);

// The recipe of a data set: beside its file list or beside the data files. nullopt: it has none (it
// was not made by `cistern data convert`). kInvalidArgument: parts of `source` have different
// recipes. source: as in ReadFileList.
absl::StatusOr<std::optional<FoundRecipe>> RecipeOfSource(FileSystem& files,
                                                          const std::string& source);

// kInvalidArgument, with the first difference, unless both have the same meaning.
absl::Status CheckSameRecipe(const FoundRecipe& mine, const FoundRecipe& other);

// Writes the recipe to a folder. The vocabulary must be there already.
absl::Status WriteRecipe(FileSystem& files, const Recipe& recipe, const std::string& folder);
// Copies a recipe and its vocabulary to a folder.
absl::Status CopyRecipe(FileSystem& files, const FoundRecipe& from, const std::string& folder);
// Replaces the recipe of a folder by one that extends it. A crash leaves the old or the new one.
absl::Status ReplaceRecipe(FileSystem& files, const FoundRecipe& from, const std::string& folder);
// Removes both from a folder, if they are there.
absl::Status RemoveRecipe(FileSystem& files, const std::string& folder);

// "hash 64": what the file of a vocabulary says of its keys.
std::string VocabularyKind(const Recipe& recipe);

// An encoder with the vocabulary that it needs.
//
// Threads: any.
class OwnedEncoder {
 public:
  // Also reads the vocabulary. kDataLoss: it is missing, or is not the one that the recipe names.
  static absl::StatusOr<std::shared_ptr<const OwnedEncoder>> Open(const Recipe& recipe,
                                                                  const std::string& vocabulary);
  const RowEncoder& encoder() const { return *encoder_; }
  const Vocabulary* vocabulary() const { return vocabulary_.get(); }  // null without one
  const Recipe& recipe() const { return encoder_->recipe(); }

 private:
  OwnedEncoder() = default;
  std::unique_ptr<Vocabulary> vocabulary_;  // null without one
  std::unique_ptr<RowEncoder> encoder_;
};

}  // namespace cistern::data
