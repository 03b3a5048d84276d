#include "worker/pass/sample_cursor.h"

namespace cistern {

absl::StatusOr<bool> SampleCursor::Next(BatchSamples* out) {
  SampleBlock& block = out->block;
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
  if (opened_ == options_.epochs && options_.epochs != 0) return false;
  if (out.block.size == options_.batchsize) return false;
  if (out.block.size > 0 && !options_.wrap) return false;
  CISTERN_ASSIGN_OR_RETURN(reader_, open_());
  ++opened_;
  epoch_samples_ = 0;
  return true;
}

}  // namespace cistern
