#include "worker/export/hugectr/file_set.h"

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

std::string OldName(const std::string& path) {
  return absl::StrCat(path, ".old");
}

}  // namespace

std::string FileSet::FreshName(const std::string& path) {
  return absl::StrCat(path, ".new");
}

FileSet::~FileSet() {
  if (done_) return;
  for (const std::string& path : paths_) {
    RemoveTree(files_, FreshName(path)).IgnoreError();  // the caller reports the original error
  }
}

absl::StatusOr<std::string> FileSet::Stage(const std::string& path) {
  const std::string fresh = FreshName(path);
  CISTERN_RETURN_IF_ERROR(RemoveTree(files_, fresh));
  paths_.push_back(path);
  return fresh;
}

absl::Status FileSet::Appear() {
  absl::Status renamed = HideOld();
  if (renamed.ok()) renamed = RenameFresh();
  if (!renamed.ok()) {
    Undo();
    return renamed;
  }
  done_ = true;
  for (const std::string& path : paths_) {
    RemoveTree(files_, OldName(path)).IgnoreError();  // a leftover is harmless
  }
  return absl::OkStatus();
}

// The last one first: from then on there is no set.
absl::Status FileSet::HideOld() {
  for (size_t i = paths_.size(); i-- > 0;) {
    const std::string old = OldName(paths_[i]);
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, old));
    const absl::Status hidden = files_.Replace(paths_[i], old);
    if (absl::IsNotFound(hidden)) continue;
    CISTERN_RETURN_IF_ERROR(hidden);
    renamed_.push_back({paths_[i], old});
    // On disk before the others follow.
    if (i + 1 == paths_.size()) CISTERN_RETURN_IF_ERROR(files_.SyncFolder(ParentFolder(old)));
  }
  return absl::OkStatus();
}

absl::Status FileSet::RenameFresh() {
  for (size_t i = 0; i < paths_.size(); ++i) {
    const bool last = i + 1 == paths_.size();
    // The others are on disk before the last one appears.
    if (last) CISTERN_RETURN_IF_ERROR(files_.SyncFolder(ParentFolder(paths_[i])));
    CISTERN_RETURN_IF_ERROR(files_.Replace(FreshName(paths_[i]), paths_[i]));
    renamed_.push_back({FreshName(paths_[i]), paths_[i]});
    if (last) CISTERN_RETURN_IF_ERROR(files_.SyncFolder(ParentFolder(paths_[i])));
  }
  return absl::OkStatus();
}

void FileSet::Undo() {
  for (; !renamed_.empty(); renamed_.pop_back()) {
    files_.Replace(renamed_.back().to, renamed_.back().from).IgnoreError();
  }
}

}  // namespace cistern
