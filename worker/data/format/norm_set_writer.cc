#include "worker/data/format/norm_set_writer.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "worker/data/format/file_list.h"

namespace cistern::data {

NormSetWriter::NormSetWriter(FileSystem& files, std::string folder,
                             const NormWriterOptions& options, uint64_t samples_per_file)
    : files_(files),
      folder_(std::move(folder)),
      options_(options),
      encoder_(options),
      samples_per_file_(samples_per_file) {
  CISTERN_CHECK(samples_per_file > 0);
}

absl::Status NormSetWriter::Append(const SampleBlock& block) {
  for (size_t done = 0; done < block.size;) {
    CISTERN_ASSIGN_OR_RETURN(const size_t count, RoomFor(block.size - done));
    CISTERN_RETURN_IF_ERROR(writer_->Append(block, done, count));
    done += count;
  }
  return absl::OkStatus();
}

absl::Status NormSetWriter::AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool) {
  std::vector<Records> records(blocks.size());
  pool.ParallelFor(blocks.size(), [&](size_t i) { records[i] = Encode(blocks[i]); });
  for (size_t i = 0; i < blocks.size(); ++i) {
    // On error, appends record by record: that error names file and record.
    CISTERN_RETURN_IF_ERROR(records[i].status.ok() ? AppendRecords(records[i]) : Append(blocks[i]));
  }
  return absl::OkStatus();
}

NormSetWriter::Records NormSetWriter::Encode(const SampleBlock& block) const {
  Records records;
  for (size_t sample = 0; sample < block.size && records.status.ok(); ++sample) {
    records.status = encoder_.Append(block, sample, &records.bytes);
    records.ends.push_back(records.bytes.size());
  }
  return records;
}

absl::Status NormSetWriter::AppendRecords(const Records& records) {
  const absl::string_view bytes = records.bytes;
  for (size_t done = 0, begin = 0; done < records.ends.size();) {
    CISTERN_ASSIGN_OR_RETURN(const size_t count, RoomFor(records.ends.size() - done));
    const size_t end = records.ends[done + count - 1];
    CISTERN_RETURN_IF_ERROR(writer_->AppendRecords(bytes.substr(begin, end - begin), count));
    begin = end;
    done += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> NormSetWriter::RoomFor(size_t wanted) {
  if (writer_ != nullptr && writer_->records() == samples_per_file_) {
    CISTERN_RETURN_IF_ERROR(CloseFile());
  }
  if (writer_ == nullptr) CISTERN_RETURN_IF_ERROR(OpenFile());
  return std::min<uint64_t>(wanted, samples_per_file_ - writer_->records());
}

absl::Status NormSetWriter::Close() {
  if (names_.empty()) CISTERN_RETURN_IF_ERROR(OpenFile());
  CISTERN_RETURN_IF_ERROR(CloseFile());
  return WriteFileList(files_, folder_ + "/file_list.txt", names_);
}

absl::Status NormSetWriter::OpenFile() {
  names_.push_back(absl::StrFormat("part-%05d.norm", names_.size()));
  CISTERN_ASSIGN_OR_RETURN(writer_,
                           NormWriter::Create(files_, folder_ + "/" + names_.back(), options_));
  return absl::OkStatus();
}

absl::Status NormSetWriter::CloseFile() {
  CISTERN_RETURN_IF_ERROR(writer_->Close());
  bytes_ += writer_->bytes();
  writer_.reset();
  return absl::OkStatus();
}

}  // namespace cistern::data
