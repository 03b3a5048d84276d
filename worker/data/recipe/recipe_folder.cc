#include "worker/data/recipe/recipe_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/hash_text.h"
#include "common/io/new_file.h"
#include "worker/data/format/file_list.h"
#include "worker/data/storage/remote_tree.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

constexpr uint64_t kMaxRecipeBytes = uint64_t{256} << 20;  // of recipe.json
constexpr size_t kCopyBytes = size_t{1} << 20;

std::string FolderOfFile(const std::string& path) {
  if (IsRemote(path)) return RemoteParent(path);
  const std::string folder = std::filesystem::path(WithoutFileScheme(path)).parent_path();
  return folder.empty() ? "." : folder;
}

std::string Child(const std::string& folder, const char* name) {
  return IsRemote(folder) ? RemoteChild(folder, name) : absl::StrCat(folder, "/", name);
}

absl::StatusOr<std::string> RemoteText(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenSource(path));
  std::string text, piece(kCopyBytes, '\0');
  while (text.size() <= kMaxRecipeBytes) {
    CISTERN_ASSIGN_OR_RETURN(const size_t size, source->Read(piece.data(), piece.size()));
    if (size == 0) return text;
    text.append(piece, 0, size);
  }
  return absl::ResourceExhaustedError(absl::StrCat(path, " is too large for a recipe"));
}

// The text of a recipe; nullopt: there is none.
absl::StatusOr<std::optional<std::string>> TextOf(FileSystem& files, const std::string& path) {
  if (IsRemote(path)) {
    absl::StatusOr<std::string> text = RemoteText(path);
    if (absl::IsNotFound(text.status())) return std::nullopt;
    if (!text.ok()) return text.status();
    return *std::move(text);
  }
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  CISTERN_ASSIGN_OR_RETURN(std::string text, ReadWhole(files, path, kMaxRecipeBytes));
  return text;
}

// Remote paths that come here are those of folders: commands copy what a flag names.
bool IsFolder(const std::string& path) {
  std::error_code error;
  if (IsRemote(path)) return true;
  return std::filesystem::is_directory(path, error);
}

// A vocabulary that is about to become vocabulary.txt.
std::string NextVocabulary(uint64_t xxh3) {
  return absl::StrCat("vocabulary-", HashText(xxh3), ".txt");
}

// Copies a file; kDataLoss unless it has this XXH3.
absl::Status CopyFile(FileSystem& files, const std::string& from, const std::string& to,
                      uint64_t xxh3) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> copy, NewFile::Create(files, to));
  if (IsRemote(from)) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenSource(from));
    std::string piece(kCopyBytes, '\0');
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(const size_t size, source->Read(piece.data(), piece.size()));
      if (size == 0) break;
      CISTERN_RETURN_IF_ERROR(copy->Append(absl::string_view(piece.data(), size)));
    }
  } else {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> source, files.Open(from));
    std::string bytes;
    for (uint64_t at = 0; at < source->bytes(); at += bytes.size()) {
      bytes.resize(std::min<uint64_t>(kCopyBytes, source->bytes() - at));
      CISTERN_RETURN_IF_ERROR(source->Read(at, bytes.size(), bytes.data()));
      CISTERN_RETURN_IF_ERROR(copy->Append(bytes));
    }
  }
  CISTERN_RETURN_IF_ERROR(copy->Close());
  if (copy->xxh3() == xxh3) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      from, " is not the vocabulary that the recipe beside it names (checksum mismatch)"));
}

}  // namespace

std::string FoundRecipe::vocabulary_path() const {
  if (!recipe.vocabulary_xxh3) return "";
  const std::string folder = FolderOfFile(path);
  if (!IsRemote(folder)) {
    const std::string next = Child(folder, NextVocabulary(*recipe.vocabulary_xxh3).c_str());
    std::error_code error;
    if (std::filesystem::exists(next, error)) return next;
  }
  return Child(folder, kVocabularyFile);
}

absl::StatusOr<std::optional<FoundRecipe>> FindRecipe(FileSystem& files, const std::string& path) {
  FoundRecipe found;
  found.path = IsFolder(path) ? Child(path, kRecipeFile) : path;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<std::string> text, TextOf(files, found.path));
  if (!text) return std::nullopt;
  absl::StatusOr<Recipe> recipe = ParseRecipe(*text);
  if (!recipe.ok()) return AddContext(recipe.status(), found.path);
  found.recipe = *std::move(recipe);
  return found;
}

absl::StatusOr<FoundRecipe> ReadRecipe(FileSystem& files, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::optional<FoundRecipe> found, FindRecipe(files, path));
  if (found) return *std::move(found);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no recipe ", IsFolder(path) ? path + "/" + kRecipeFile : path,
                   " (cistern data convert writes one beside its data set)"));
}

absl::StatusOr<std::optional<FoundRecipe>> RecipeOfSource(FileSystem& files,
                                                          const std::string& source) {
  std::set<std::string> folders;
  std::optional<FoundRecipe> first;
  for (const std::string& file : FilesOfSource(source)) {
    const std::string folder = FolderOfFile(file);
    if (!folders.insert(folder).second) continue;
    CISTERN_ASSIGN_OR_RETURN(std::optional<FoundRecipe> found, FindRecipe(files, folder));
    if (!found) continue;
    if (first && Extends(first->recipe, found->recipe)) continue;
    if (first && !Extends(found->recipe, first->recipe)) return CheckSameRecipe(*found, *first);
    first = std::move(found);
  }
  return first;
}

absl::Status CheckSameRecipe(const FoundRecipe& mine, const FoundRecipe& other) {
  const std::string difference = RecipeDifference(mine.recipe, other.recipe);
  if (difference.empty()) return absl::OkStatus();
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat(mine.path, " differs from ", other.path, ": ", difference,
                                      "; convert the data with that recipe, ", other.path)),
                     {"data.convert.recipe"});
}

absl::Status WriteRecipe(FileSystem& files, const Recipe& recipe, const std::string& folder) {
  return WriteWhole(files, absl::StrCat(folder, "/", kRecipeFile), FormatRecipe(recipe));
}

absl::Status CopyRecipe(FileSystem& files, const FoundRecipe& from, const std::string& folder) {
  if (from.recipe.vocabulary_xxh3) {
    CISTERN_RETURN_IF_ERROR(CopyFile(files, from.vocabulary_path(),
                                     absl::StrCat(folder, "/", kVocabularyFile),
                                     *from.recipe.vocabulary_xxh3));
  }
  return WriteRecipe(files, from.recipe, folder);
}

absl::Status ReplaceRecipe(FileSystem& files, const FoundRecipe& from, const std::string& folder) {
  if (!from.recipe.vocabulary_xxh3) return WriteRecipe(files, from.recipe, folder);
  const uint64_t xxh3 = *from.recipe.vocabulary_xxh3;
  const std::string next = absl::StrCat(folder, "/", NextVocabulary(xxh3));
  CISTERN_RETURN_IF_ERROR(CopyFile(files, from.vocabulary_path(), next, xxh3));
  CISTERN_RETURN_IF_ERROR(WriteRecipe(files, from.recipe, folder));
  CISTERN_RETURN_IF_ERROR(CopyFile(files, next, absl::StrCat(folder, "/", kVocabularyFile), xxh3));
  return RemoveIfThere(files, next);
}

absl::Status RemoveRecipe(FileSystem& files, const std::string& folder) {
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, absl::StrCat(folder, "/", kRecipeFile)));
  return RemoveIfThere(files, absl::StrCat(folder, "/", kVocabularyFile));
}

std::string VocabularyKind(const Recipe& recipe) {
  const char* const mode = recipe.keys == KeyMode::kRaw      ? "raw "
                           : recipe.keys == KeyMode::kSigned ? "signed "
                                                             : "hash ";
  return absl::StrCat(mode, recipe.key_bits);
}

absl::StatusOr<std::shared_ptr<const OwnedEncoder>> OwnedEncoder::Open(
    const Recipe& recipe, const std::string& vocabulary) {
  std::shared_ptr<OwnedEncoder> made(new OwnedEncoder());
  if (recipe.vocabulary_xxh3) {
    made->vocabulary_ = std::make_unique<Vocabulary>(VocabularyKind(recipe));
    const absl::StatusOr<uint64_t> read = made->vocabulary_->Read(vocabulary);
    if (!read.ok()) return WithCode(read.status(), absl::StatusCode::kDataLoss);
    if (*read != *recipe.vocabulary_xxh3) {
      return absl::DataLossError(absl::StrCat(
          vocabulary, " is not the vocabulary that its recipe names (checksum mismatch)"));
    }
  }
  made->encoder_ = std::make_unique<RowEncoder>(recipe, made->vocabulary_.get());
  return made;
}

}  // namespace cistern::data
