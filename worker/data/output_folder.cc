#include "worker/data/output_folder.h"

#include <unistd.h>

#include <filesystem>

namespace cistern {
namespace {

namespace fs = std::filesystem;

bool HoldsDataSet(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "file_list.txt", error) ||
         fs::exists(path / "train" / "file_list.txt", error);
}

absl::Status FileError(const std::error_code& error, const std::string& what) {
  return absl::ErrnoToStatus(error.value(), what);
}

std::string NameOf(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

}  // namespace

OutputFolder::OutputFolder(std::string path, const std::string& temporary)
    : path_(std::move(path)),
      temporary_(temporary.empty() ? absl::StrCat(path_, ".partial-", getpid()) : temporary) {}

absl::Status OutputFolder::Check(const std::string& path, bool overwrite) {
  const std::string name = NameOf(path);
  if (name.empty()) return absl::InvalidArgumentError("no output folder was named: use --out");
  std::error_code error;
  if (fs::exists(name, error) && !(fs::is_directory(name, error) && fs::is_empty(name, error))) {
    if (!HoldsDataSet(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " exists and is not a data set: name another folder"));
    }
    if (!overwrite) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " exists: name another folder, or replace it with --overwrite"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OutputFolder>> OutputFolder::Create(const std::string& path,
                                                                   bool overwrite,
                                                                   const std::string& temporary) {
  CISTERN_RETURN_IF_ERROR(Check(path, overwrite));
  std::unique_ptr<OutputFolder> folder(new OutputFolder(NameOf(path), temporary));
  std::error_code error;
  fs::remove_all(folder->temporary_, error);
  fs::create_directories(folder->temporary_, error);
  if (error) return FileError(error, absl::StrCat("cannot create ", folder->temporary_));
  return folder;
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!published_) fs::remove_all(temporary_, ignored);
}

absl::StatusOr<std::string> OutputFolder::Subfolder(const std::string& name) {
  const fs::path folder = name.empty() ? fs::path(temporary_) : fs::path(temporary_) / name;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FileError(error, absl::StrCat("cannot create ", folder.string()));
  return folder.string();
}

absl::Status OutputFolder::Publish() {
  const std::string old = absl::StrCat(path_, ".old-", getpid());
  std::error_code error, ignored;
  const bool replaces = fs::exists(path_, ignored);
  if (replaces) fs::rename(path_, old, error);
  if (!error) fs::rename(temporary_, path_, error);
  if (error) {
    if (replaces && !fs::exists(path_, ignored)) fs::rename(old, path_, ignored);
    return FileError(error, absl::StrCat("cannot complete ", path_));
  }
  published_ = true;
  fs::remove_all(old, ignored);
  return absl::OkStatus();
}

}  // namespace cistern
