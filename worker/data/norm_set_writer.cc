#include "worker/data/norm_set_writer.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/check.h"
#include "worker/data/file_list.h"

namespace cistern {

NormSetWriter::NormSetWriter(std::string folder, const NormWriterOptions& options,
                             uint64_t samples_per_file)
    : folder_(std::move(folder)), options_(options), samples_per_file_(samples_per_file) {
  CISTERN_CHECK(samples_per_file > 0);
}

absl::Status NormSetWriter::Append(const SampleBlock& block) {
  for (size_t done = 0; done < block.size;) {
    if (writer_ != nullptr && writer_->records() == samples_per_file_) {
      CISTERN_RETURN_IF_ERROR(CloseFile());
    }
    if (writer_ == nullptr) CISTERN_RETURN_IF_ERROR(OpenFile());
    const size_t count =
        std::min<uint64_t>(block.size - done, samples_per_file_ - writer_->records());
    CISTERN_RETURN_IF_ERROR(writer_->Append(block, done, count));
    done += count;
  }
  return absl::OkStatus();
}

absl::Status NormSetWriter::Close() {
  if (names_.empty()) CISTERN_RETURN_IF_ERROR(OpenFile());
  CISTERN_RETURN_IF_ERROR(CloseFile());
  return WriteFileList(folder_ + "/file_list.txt", names_);
}

absl::Status NormSetWriter::OpenFile() {
  names_.push_back(absl::StrFormat("part-%05d.norm", names_.size()));
  CISTERN_ASSIGN_OR_RETURN(writer_, NormWriter::Create(folder_ + "/" + names_.back(), options_));
  return absl::OkStatus();
}

absl::Status NormSetWriter::CloseFile() {
  CISTERN_RETURN_IF_ERROR(writer_->Close());
  bytes_ += writer_->bytes();
  writer_.reset();
  return absl::OkStatus();
}

}  // namespace cistern
