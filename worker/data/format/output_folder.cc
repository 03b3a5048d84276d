#include "worker/data/format/output_folder.h"

#include <unistd.h>

#include <filesystem>

namespace cistern::data {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "lock";

bool HoldsDataSet(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "file_list.txt", error) ||
         fs::exists(path / "train" / "file_list.txt", error);
}

std::string NameOf(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

}  // namespace

OutputFolder::OutputFolder(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), temporary_(path_ + ".partial-set") {}

absl::Status OutputFolder::Check(const std::string& path, bool overwrite) {
  const std::string name = NameOf(path);
  if (name.empty())
    return WithOptions(absl::InvalidArgumentError("no output folder was named"), {"out"});
  std::error_code error;
  if (fs::exists(name, error) && !(fs::is_directory(name, error) && fs::is_empty(name, error))) {
    if (!HoldsDataSet(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " exists and is not a data set: name another folder"));
    }
    if (!overwrite) {
      return WithOptions(absl::InvalidArgumentError(
                             absl::StrCat(name, " exists: name another folder, or overwrite it")),
                         {"overwrite"});
    }
  }
  return absl::OkStatus();
}

absl::Status OutputFolder::CheckSpares(const std::string& path,
                                       const std::vector<std::string>& read) {
  std::error_code ignored;
  for (const std::string& file : read) {
    fs::path above = fs::weakly_canonical(file, ignored);
    while (above.has_relative_path()) {
      above = above.parent_path();
      if (!fs::equivalent(above, path, ignored)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(file, " is in ", path, ", which would be replaced: name another folder"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OutputFolder>> OutputFolder::Create(FileSystem& files,
                                                                   const std::string& path,
                                                                   bool overwrite) {
  CISTERN_RETURN_IF_ERROR(Check(path, overwrite));
  std::unique_ptr<OutputFolder> folder(new OutputFolder(files, NameOf(path)));
  CISTERN_RETURN_IF_ERROR(folder->Take());
  return folder;
}

// A killed process leaves files but no lock.
absl::Status OutputFolder::Take() {
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(temporary_));
  absl::StatusOr<std::unique_ptr<FileLock>> lock =
      files_.Lock(absl::StrCat(temporary_, "/", kLock));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::InvalidArgumentError(absl::StrCat("another process is working in ", temporary_,
                                                   ": wait for it, or name another folder"));
  }
  CISTERN_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(temporary_));
  for (const std::string& name : names) {
    if (name == kLock) continue;
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, absl::StrCat(temporary_, "/", name)));
  }
  return absl::OkStatus();
}

OutputFolder::~OutputFolder() {
  // Ignores errors: the caller reports the error that led here.
  if (lock_ != nullptr) RemoveTree(files_, temporary_).IgnoreError();
}

absl::StatusOr<std::string> OutputFolder::Subfolder(const std::string& name) {
  if (name.empty()) return temporary_;
  const std::string folder = absl::StrCat(temporary_, "/", name);
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(folder));
  subfolders_.push_back(folder);
  return folder;
}

absl::Status OutputFolder::Publish() {
  CISTERN_RETURN_IF_ERROR(files_.Remove(absl::StrCat(temporary_, "/", kLock)));
  for (const std::string& folder : subfolders_) CISTERN_RETURN_IF_ERROR(files_.SyncFolder(folder));
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(temporary_));
  const std::string old = absl::StrCat(path_, ".old-", getpid());
  const absl::Status moved = files_.Replace(path_, old);
  if (!absl::IsNotFound(moved)) CISTERN_RETURN_IF_ERROR(moved);
  const absl::Status placed = files_.Replace(temporary_, path_);
  if (!placed.ok()) {
    if (moved.ok()) files_.Replace(old, path_).IgnoreError();  // `placed` is the error to report
    return placed;
  }
  lock_.reset();
  RemoveTree(files_, old).IgnoreError();  // a leftover folder is not an error
  return files_.SyncFolder(ParentFolder(path_));
}

}  // namespace cistern::data
