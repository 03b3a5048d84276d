#include "worker/data/source/sample_cursor.h"

#include <utility>

namespace cistern::data {

absl::StatusOr<bool> SampleCursor::Next(BatchSamples* out) {
  SampleBlock& block = out->block;
  if (skip_ > 0) CISTERN_RETURN_IF_ERROR(SkipToStart());
  block.Reset(options_.inputs);
  if (!last_.keys.empty()) block.Reserve(last_);
  if (ahead_.size > 0) block.Append(ahead_, 0, 1);
  ahead_.Reset(options_.inputs);
  passed_over_.Reset(options_.inputs);
  out->all = std::exchange(has_ahead_, false) ? 1 : 0;
  out->first = options_.part_begin;
  out->epoch = opened_ - 1;
  out->ends_epoch = false;
  while (!has_ahead_) {
    if (reader_ == nullptr) {
      CISTERN_ASSIGN_OR_RETURN(const bool opened, OpenEpoch(*out));
      if (!opened) break;
      if (out->all == 0) out->epoch = opened_ - 1;
    }
    CISTERN_ASSIGN_OR_RETURN(const size_t got, Take(out));
    epoch_samples_ += got;
    if (got > 0) continue;
    if (epoch_samples_ == 0) return absl::DataLossError("the data source holds no sample");
    reader_.reset();
    out->ends_epoch = true;
  }
  last_ = block.sizes();
  return out->all > 0;
}

absl::StatusOr<size_t> SampleCursor::Take(BatchSamples* out) {
  const size_t at = out->all, begin = options_.part_begin, end = options_.part_end;
  if (at == options_.batchsize) {
    // It begins a batch; another worker takes it unless this worker's part begins at 0.
    size_t got = 0;
    if (begin == 0 && end > 0) {
      CISTERN_ASSIGN_OR_RETURN(got, reader_->Read(1, &ahead_));
    } else {
      CISTERN_ASSIGN_OR_RETURN(got, reader_->Skip(1, &passed_over_));
    }
    has_ahead_ = got > 0;
    return got;
  }
  size_t got = 0;
  if (begin <= at && at < end) {
    CISTERN_ASSIGN_OR_RETURN(got, reader_->Read(end - at, &out->block));
  } else {
    passed_over_.Reset(options_.inputs);
    const size_t next = at < begin ? begin : options_.batchsize;
    CISTERN_ASSIGN_OR_RETURN(got, reader_->Skip(next - at, &passed_over_));
  }
  out->all += got;
  return got;
}

absl::StatusOr<bool> SampleCursor::OpenEpoch(const BatchSamples& out) {
  if (AllOpened()) return false;
  if (out.all == options_.batchsize) return false;
  if (out.all > 0 && !options_.wrap) return false;
  CISTERN_ASSIGN_OR_RETURN(reader_, open_(opened_));
  ++opened_;
  epoch_samples_ = 0;
  return true;
}

absl::Status SampleCursor::SkipToStart() {
  if (AllOpened()) {
    skip_ = 0;
    return absl::OkStatus();
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, open_(opened_));
  SampleBlock scratch;
  scratch.Reset(options_.inputs);
  CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader->Skip(skip_, &scratch));
  if (skipped < skip_) {
    return absl::DataLossError(absl::StrCat(
        "the data holds ", skipped, " samples, but ", skip_,
        " of them are already trained: the data changed since the run stopped; restore it, or "
        "train from the start"));
  }
  reader_ = std::move(reader);
  ++opened_;
  epoch_samples_ = std::exchange(skip_, 0);
  return absl::OkStatus();
}

DataPlace SampleCursor::place() const {
  if (skip_ > 0) return {opened_, skip_, {}, ""};
  if (reader_ == nullptr) return {opened_, 0, {}, ""};
  return {opened_ - 1, epoch_samples_ - (has_ahead_ ? 1 : 0), {}, ""};
}

}  // namespace cistern::data
