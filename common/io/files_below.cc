#include "common/io/files_below.h"

#include "absl/strings/strip.h"

namespace cistern {
namespace {

std::string WithoutSlashes(absl::string_view folder) {
  while (absl::ConsumeSuffix(&folder, "/")) continue;
  return std::string(folder);
}

}  // namespace

FilesBelow::FilesBelow(FileSystem* files, const std::string& root)
    : files_(files), root_(WithoutSlashes(root)) {}

absl::StatusOr<FilePath> FilesBelow::Below(const FilePath& path) const {
  absl::string_view name = path.text();
  if (!absl::ConsumePrefix(&name, root_) || !absl::ConsumePrefix(&name, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path.text(), "' is not in the folder ", root_));
  }
  while (absl::ConsumePrefix(&name, "/")) continue;
  return PathBelow(root_, name);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FilesBelow::Create(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->Create(below);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FilesBelow::CreatePrivate(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->CreatePrivate(below);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FilesBelow::Open(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->Open(below);
}

absl::Status FilesBelow::MakeFolders(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->MakeFolders(below);
}

absl::Status FilesBelow::Publish(const FilePath& from, const FilePath& to) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(from));
  CISTERN_ASSIGN_OR_RETURN(const FilePath to_below, Below(to));
  return files_->Publish(below, to_below);
}

absl::Status FilesBelow::Replace(const FilePath& from, const FilePath& to) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(from));
  CISTERN_ASSIGN_OR_RETURN(const FilePath to_below, Below(to));
  return files_->Replace(below, to_below);
}

absl::Status FilesBelow::Exchange(const FilePath& a, const FilePath& b) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath a_below, Below(a));
  CISTERN_ASSIGN_OR_RETURN(const FilePath b_below, Below(b));
  return files_->Exchange(a_below, b_below);
}

absl::Status FilesBelow::Remove(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->Remove(below);
}

absl::Status FilesBelow::SyncFolder(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->SyncFolder(below);
}

absl::StatusOr<std::vector<std::string>> FilesBelow::List(const FilePath& folder) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(folder));
  return files_->List(below);
}

absl::StatusOr<bool> FilesBelow::Exists(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->Exists(below);
}

absl::Status FilesBelow::MakeLink(const std::string& target, const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->MakeLink(target, below);
}

absl::StatusOr<std::string> FilesBelow::ReadLink(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->ReadLink(below);
}

absl::StatusOr<std::unique_ptr<FileLock>> FilesBelow::Lock(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(const FilePath below, Below(path));
  return files_->Lock(below);
}

}  // namespace cistern
