#include "worker/pass/sample_cursor.h"

#include <utility>

namespace cistern {

absl::StatusOr<bool> SampleCursor::Next(BatchSamples* out) {
  SampleBlock& block = out->block;
  if (skip_ > 0) CISTERN_RETURN_IF_ERROR(SkipToStart());
  block.Reset(options_.inputs);
  if (ahead_.size > 0) block.Append(ahead_, 0, 1);
  ahead_.Reset(options_.inputs);
  out->epoch = opened_ - 1;
  out->ends_epoch = false;
  while (block.size <= options_.batchsize) {
    if (reader_ == nullptr) {
      CISTERN_ASSIGN_OR_RETURN(const bool opened, OpenEpoch(*out));
      if (!opened) break;
      if (block.size == 0) out->epoch = opened_ - 1;
    }
    CISTERN_ASSIGN_OR_RETURN(const size_t got,
                             reader_->Read(options_.batchsize + 1 - block.size, &block));
    epoch_samples_ += got;
    if (got > 0) continue;
    if (epoch_samples_ == 0) return absl::DataLossError("the data source holds no sample");
    reader_.reset();
    out->ends_epoch = true;
  }
  if (block.size > options_.batchsize) {
    ahead_.Append(block, options_.batchsize, 1);
    block.Truncate(options_.batchsize);
  }
  return block.size > 0;
}

absl::StatusOr<bool> SampleCursor::OpenEpoch(const BatchSamples& out) {
  if (AllOpened()) return false;
  if (out.block.size == options_.batchsize) return false;
  if (out.block.size > 0 && !options_.wrap) return false;
  CISTERN_ASSIGN_OR_RETURN(reader_, open_());
  ++opened_;
  epoch_samples_ = 0;
  return true;
}

absl::Status SampleCursor::SkipToStart() {
  if (AllOpened()) {
    skip_ = 0;
    return absl::OkStatus();
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, open_());
  SampleBlock scratch;
  scratch.Reset(options_.inputs);
  CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader->Skip(skip_, &scratch));
  if (skipped < skip_) {
    return absl::DataLossError(
        absl::StrCat("the data holds ", skipped, " samples, but ", skip_,
                     " of them were trained already: it is not the data that it was"));
  }
  reader_ = std::move(reader);
  ++opened_;
  epoch_samples_ = std::exchange(skip_, 0);
  return absl::OkStatus();
}

DataPlace SampleCursor::place() const {
  if (skip_ > 0) return {opened_, skip_};
  if (reader_ == nullptr) return {opened_, 0};
  return {opened_ - 1, epoch_samples_ - ahead_.size};
}

}  // namespace cistern
