#include "worker/data/format/output_file.h"

#include <filesystem>
#include <utility>

#include "common/base/check.h"

namespace cistern {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

absl::Status OutputFile::Check(const std::string& path, const std::vector<std::string>& read) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(path, why));
  };
  if (fs::is_directory(path, ignored)) return invalid(" is a folder: name a file in it");
  if (fs::is_other(path, ignored)) {  // such as /dev/null: the rename would turn it into a file
    return invalid(" is a device or a pipe and would be replaced: name a file");
  }
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

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(FileSystem& files,
                                                               const std::string& path) {
  const std::string temporary = path + ".tmp";
  // Removes the leftover of a killed run. If that fails, Create below returns the reason.
  files.Remove(temporary).IgnoreError();
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> out, files.Create(temporary));
  out->WillBeRead();
  return std::unique_ptr<OutputFile>(new OutputFile(files, path, std::move(out)));
}

OutputFile::~OutputFile() {
  if (out_ == nullptr) return;
  out_.reset();
  files_.Remove(temporary_path()).IgnoreError();  // the error that led here is the one to report
}

absl::Status OutputFile::Append(absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(status_);
  buffer_.append(bytes.data(), bytes.size());
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status OutputFile::WriteAt(uint64_t offset, absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(Flush());
  CISTERN_CHECK(offset + bytes.size() <= written_);
  status_ = out_->WriteAt(offset, bytes);
  return status_;
}

absl::Status OutputFile::Close() {
  CISTERN_RETURN_IF_ERROR(Flush());
  status_ = Finish();
  return status_;
}

absl::Status OutputFile::Finish() {
  CISTERN_RETURN_IF_ERROR(out_->Sync());
  CISTERN_RETURN_IF_ERROR(out_->Close());
  CISTERN_RETURN_IF_ERROR(files_.Replace(temporary_path(), path_));
  out_.reset();
  return absl::OkStatus();
}

absl::Status OutputFile::Flush() {
  CISTERN_RETURN_IF_ERROR(status_);
  CISTERN_CHECK(out_ != nullptr);
  status_ = out_->Append(buffer_);
  CISTERN_RETURN_IF_ERROR(status_);
  written_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

}  // namespace cistern
