#include "worker/data/recipe/table_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace cistern {

absl::StatusOr<std::vector<std::string>> TableFiles(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder ", why));
  };
  std::vector<std::string> files;
  std::string folder;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == "_temporary") {
      return refuse("whose writer has not finished (_temporary): wait for it, or write it again");
    }
    if (name == "recipe.json" || name == "file_list.txt") {
      return refuse("that holds a data set of Cistern, not a table: name the table it is made of");
    }
    if (absl::StartsWith(name, "_") || absl::StartsWith(name, ".")) continue;
    if (entry->is_directory(error)) {
      folder = name;
    } else if (entry->file_size(error) > 0) {  // Spark writes empty files for empty parts
      files.push_back(entry->path());
    }
  }
  if (error) return refuse(absl::StrCat("that cannot be read: ", error.message()));
  if (!folder.empty()) {
    return refuse(absl::StrCat("with folders in it, such as ", folder,
                               ": name the folders that hold the part files"));
  }
  if (files.empty()) return refuse("without part files: name a table, or a folder of them");
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<std::string>> TableFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, TableFiles(path));
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

bool IsParquetFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe is read only once
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof(magic));
  return file && absl::string_view(magic, sizeof(magic)) == "PAR1";
}

}  // namespace cistern
