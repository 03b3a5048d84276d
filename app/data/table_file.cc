#include "app/data/table_file.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "app/run/run_folder.h"
#include "worker/data/prepare/table_layout.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/storage/storage.h"

namespace cistern::app {
namespace {

// Whether a file whose ending names no format holds a table: columns of text, or an object a line.
// A file list has lines of one field.
bool HoldsTable(const std::string& path) {
  constexpr absl::string_view kEndings[] = {"", ".txt", ".data", ".dat", ".tab", ".psv"};
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string ending =
      absl::AsciiStrToLower(std::filesystem::path(path).extension().string());
  // What an array of rows lacks is said where tables are read; no model file is an array.
  if (ending == ".json") return data::IsJsonLines(path) || !data::CheckNoJsonArray(path).ok();
  return std::count(std::begin(kEndings), std::end(kEndings), ending) > 0 &&
         data::FindLayout(path, {}).ok();
}

}  // namespace

bool IsTable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const absl::StatusOr<std::vector<std::string>> files = data::TableFiles(path);
    return !IsRunFolder(path) && files.ok() && IsTable(files->front());
  }
  if (!std::filesystem::exists(path, error) && data::IsPattern(path)) {
    const absl::StatusOr<std::vector<std::string>> files = data::TableFiles(path);
    return files.ok() && IsTable(files->front());
  }
  if (absl::EndsWithIgnoreCase(path, ".parquet")) return true;
  std::string endings = ".jsonl .ndjson";
  for (const data::TextFormatEntry& format : data::TextFormats()) {
    absl::StrAppend(&endings, " ", format.extensions);
  }
  // Of those that are not unpacked, the reader's error says so.
  for (const char* compression : {"", ".gz", ".zst", ".xz", ".bz2", ".zip"}) {
    for (const absl::string_view ending : absl::StrSplit(endings, ' ', absl::SkipEmpty())) {
      if (absl::EndsWithIgnoreCase(path, absl::StrCat(ending, compression))) return true;
    }
  }
  return HoldsTable(path);
}

std::string OptionWithoutTable(const std::string& path, const TableOptions& options) {
  const std::string option = GivenOption(options);
  std::error_code error;
  if (option.empty() || IsTable(path) || !std::filesystem::exists(path, error)) return "";
  return absl::EndsWith(path, ".json") || !data::FindLayout(path).ok() ? option : "";
}

absl::StatusOr<std::string> JoinTables(const std::string& first,
                                       const std::vector<std::string>& more) {
  std::string files = first;
  for (const std::string& file : more) {
    if (!IsTable(first) || !IsTable(file)) {
      return WithFix(absl::InvalidArgumentError(
                         absl::StrCat("one model file is expected, but ", file, " was given, too")),
                     "several files can only be those of a table (*.csv, *.tsv, *.parquet)");
    }
    if (absl::StrContains(file, ',')) {
      return WithFix(absl::InvalidArgumentError(
                         absl::StrCat(file, ": the comma separates the files of a table")),
                     "rename the file, or put the files into a folder and name that");
    }
    absl::StrAppend(&files, ",", file);
  }
  return files;
}

}  // namespace cistern::app
