#include "common/io/new_file.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "common/base/check.h"

namespace cistern {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

absl::Status RemoveIfThere(FileSystem& files, const std::string& path) {
  const absl::Status removed = files.Remove(path);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status NewFile::Check(const std::string& path, const std::vector<std::string>& read) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(path, why));
  };
  if (fs::is_directory(path, ignored)) return invalid(" is a folder: name a file in it");
  CISTERN_RETURN_IF_ERROR(CheckNoDevice(path));
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    return invalid(absl::StrCat(": there is no folder ", folder.string(), ": create it first"));
  }
  for (const std::string& other : read) {
    if (fs::equivalent(path, other, ignored)) {
      return invalid(" is an input file and would be replaced: name another file");
    }
  }
  return absl::OkStatus();
}

absl::Status NewFile::CheckNoDevice(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // /dev/stdout is a link, and leads to a file where the output is redirected to one.
  const bool of_system = absl::StartsWith(path, "/dev/") || absl::StartsWith(path, "/proc/");
  if (!fs::is_other(path, ignored) && !(of_system && fs::is_symlink(path, ignored))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is a device or a pipe and would be replaced: name a file"));
}

absl::StatusOr<std::unique_ptr<NewFile>> NewFile::Create(FileSystem& files,
                                                         const std::string& path) {
  CISTERN_RETURN_IF_ERROR(CheckNoDevice(path));
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(ParentFolder(path)));
  const std::string temporary = path + ".tmp";
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, temporary));  // left by a killed process
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> out, files.Create(temporary));
  return std::unique_ptr<NewFile>(new NewFile(files, path, std::move(out)));
}

NewFile::NewFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> out)
    : files_(files), path_(std::move(path)), out_(std::move(out)) {}

NewFile::~NewFile() {
  if (out_ == nullptr) return;
  out_.reset();
  files_.Remove(temporary_path()).IgnoreError();  // the caller reports the original error
}

absl::Status NewFile::Append(absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(status_);
  absl::StrAppend(&buffer_, bytes);
  bytes_ += bytes.size();
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status NewFile::WriteAt(uint64_t offset, absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(Flush());
  CISTERN_CHECK(offset + bytes.size() <= bytes_);
  overwritten_ = true;
  status_ = out_->WriteAt(offset, bytes);
  return status_;
}

absl::Status NewFile::Flush() {
  CISTERN_RETURN_IF_ERROR(status_);
  CISTERN_CHECK(out_ != nullptr);
  hash_.Add(buffer_);
  status_ = out_->Append(buffer_);
  buffer_.clear();
  return status_;
}

absl::Status NewFile::Close() {
  CISTERN_RETURN_IF_ERROR(Flush());
  status_ = Finish();
  return status_;
}

absl::Status NewFile::Finish() {
  CISTERN_RETURN_IF_ERROR(out_->Sync());
  CISTERN_RETURN_IF_ERROR(out_->Close());
  CISTERN_RETURN_IF_ERROR(files_.Replace(temporary_path(), path_));
  out_.reset();
  return files_.SyncFolder(ParentFolder(path_));
}

uint64_t NewFile::xxh3() const {
  CISTERN_CHECK(!overwritten_);
  return hash_.value();
}

absl::Status WriteWhole(FileSystem& files, const std::string& path, absl::string_view bytes) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  CISTERN_RETURN_IF_ERROR(file->Append(bytes));
  return file->Close();
}

absl::Status ReplaceFolder(FileSystem& files, const std::string& fresh, const std::string& folder) {
  const std::string old = folder + ".old";
  CISTERN_RETURN_IF_ERROR(RemoveTree(files, old));
  const std::string context = absl::StrCat("the new folder is ", fresh);
  const absl::Status exchanged = files.Exchange(fresh, folder);
  if (exchanged.ok()) {
    CISTERN_RETURN_IF_ERROR(files.SyncFolder(ParentFolder(folder)));
    RemoveTree(files, fresh).IgnoreError();  // the old one; a leftover folder is harmless
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(exchanged) && !absl::IsUnimplemented(exchanged)) {
    return AddContext(exchanged, context);
  }
  const absl::Status moved = files.Replace(folder, old);
  if (!absl::IsNotFound(moved)) CISTERN_RETURN_IF_ERROR(moved);
  const absl::Status placed = files.Replace(fresh, folder);
  if (!placed.ok()) {
    if (moved.ok()) files.Replace(old, folder).IgnoreError();  // reports the original error
    return AddContext(placed, context);
  }
  CISTERN_RETURN_IF_ERROR(files.SyncFolder(ParentFolder(folder)));
  RemoveTree(files, old).IgnoreError();  // a leftover folder is harmless
  return absl::OkStatus();
}

}  // namespace cistern
