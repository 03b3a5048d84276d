#include "worker/data/recipe/table_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/recipe/cell_members.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

// The column and the value of a folder's name, "dt=2024-05-31"; nothing for other names.
struct Partition {
  std::string column, value;
};
std::optional<Partition> PartitionOf(const std::string& name) {
  const size_t equals = name.find('=');
  if (equals == 0 || equals == std::string::npos) return std::nullopt;
  Partition partition{name.substr(0, equals), ""};
  const std::string text = name.substr(equals + 1);
  if (text != "__HIVE_DEFAULT_PARTITION__") partition.value = PercentDecoded(text);  // else missing
  return partition;
}

// The partitions in a path, outermost first.
std::vector<Partition> PartitionsOf(const std::filesystem::path& file) {
  std::vector<Partition> partitions;
  for (const std::filesystem::path& name : file.parent_path()) {
    std::optional<Partition> partition = PartitionOf(name);
    if (partition) partitions.push_back(*std::move(partition));
  }
  return partitions;
}

class PartitionedTable : public ChangedTable {
 public:
  PartitionedTable(std::unique_ptr<TextTable> table, const std::vector<Partition>& partitions)
      : ChangedTable(std::move(table)), columns_(table_->columns()) {
    for (const Partition& partition : partitions) {
      columns_.push_back(partition.column);
      values_.push_back(partition.value);
    }
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override {
    CISTERN_ASSIGN_OR_RETURN(const bool found, table_->Next(row));
    if (found) row->fields.insert(row->fields.end(), values_.begin(), values_.end());
    return found;
  }

 private:
  std::vector<std::string> columns_, values_;
};

// Adds the files of a folder and of the partitions in it.
absl::Status AddFiles(const std::string& path, std::vector<std::string>* files) {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder ", why));
  };
  std::error_code error;
  std::vector<std::string> partitions;
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
      if (PartitionOf(name)) {
        partitions.push_back(entry->path());
      } else {
        folder = name;
      }
    } else if (entry->file_size(error) > 0) {  // Spark writes empty files for empty parts
      files->push_back(entry->path());
    }
  }
  if (error) return refuse(absl::StrCat("that cannot be read: ", error.message()));
  if (!folder.empty()) {
    return refuse(absl::StrCat("with folders in it, such as ", folder,
                               ": name the folders that hold the part files, or a pattern such as "
                               "'",
                               path,
                               "/*/*'; folders of a partitioned table are named "
                               "COLUMN=VALUE"));
  }
  for (const std::string& partition : partitions) {
    CISTERN_RETURN_IF_ERROR(AddFiles(partition, files));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FilesOfPattern(const std::string& text) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> patterns, ExpandBraces(text));
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    if (!IsPattern(pattern)) {
      files.push_back(pattern);
      continue;
    }
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> found, MatchingFiles(pattern));
    for (const std::string& file : found) {
      const std::string name = std::filesystem::path(file).filename();
      std::error_code error;
      const bool counts = !absl::StartsWith(name, "_") && !absl::StartsWith(name, ".") &&
                          std::filesystem::file_size(file, error) != 0;
      if (counts) files.push_back(file);
    }
  }
  if (!files.empty()) return files;
  return absl::InvalidArgumentError(absl::StrCat(text, " matches no file that holds data"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TableFiles(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    std::vector<std::string> files;
    CISTERN_RETURN_IF_ERROR(AddFiles(path, &files));
    if (files.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is a folder without part files: name a table, or a folder of them"));
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  if (std::filesystem::exists(path, error) || IsRemote(path)) return std::vector{path};
  const std::vector<std::string> parts = SplitOutsideBraces(path);
  if (parts.size() > 1) return TableFiles(parts);
  if (IsPattern(path) || path.find('{') != std::string::npos) return FilesOfPattern(path);
  return std::vector{path};
}

absl::StatusOr<std::vector<std::string>> TableFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, TableFiles(path));
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

std::vector<std::string> PartitionColumns(const std::string& path) {
  std::vector<std::string> columns;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return columns;
  const absl::StatusOr<std::vector<std::string>> files = TableFiles(path);
  if (!files.ok()) return columns;
  const std::filesystem::path below =
      std::filesystem::path(files->front()).lexically_relative(path);
  for (const Partition& partition : PartitionsOf(below)) columns.push_back(partition.column);
  return columns;
}

std::unique_ptr<TextTable> WithPartitions(std::unique_ptr<TextTable> table, const std::string& file,
                                          const std::vector<std::string>& columns) {
  std::vector<Partition> added;
  const std::vector<std::string>& own = table->columns();
  for (const Partition& partition : PartitionsOf(file)) {
    const auto holds = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), partition.column) != names.end();
    };
    if (holds(columns) && !holds(own)) added.push_back(partition);
  }
  if (added.empty()) return table;
  return std::make_unique<PartitionedTable>(std::move(table), added);
}

bool IsParquetFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe is read only once
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof(magic));
  return file && absl::string_view(magic, sizeof(magic)) == "PAR1";
}

}  // namespace cistern::data
