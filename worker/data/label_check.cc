#include "worker/data/label_check.h"

#include <utility>

namespace cistern {
namespace {

class LabelReader : public SampleReader {
 public:
  LabelReader(std::unique_ptr<SampleReader> reader, const DataSetOptions& data)
      : reader_(std::move(reader)),
        label_dim_(data.shape.label_dim),
        may_be_missing_(data.labels == LabelRule::kProbabilityOrNone) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    const size_t before = block->size;
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader_->Read(max_samples, block));
    for (size_t i = before * label_dim_; i < block->label.size(); ++i) {
      if (IsLabel(block->label[i])) continue;
      const size_t sample = i / label_dim_;
      const absl::Status refused =
          Refuse(block->label[i], i % label_dim_, samples_ + sample - before);
      block->Truncate(sample);
      return refused;
    }
    samples_ += got;
    return got;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch) override {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader_->Skip(max_samples, scratch));
    samples_ += skipped;
    return skipped;
  }

  std::string PlaceOf(uint64_t sample) const override { return reader_->PlaceOf(sample); }

 private:
  bool IsLabel(float x) const {
    return (x >= 0 && x <= 1) || (may_be_missing_ && x < kNoLabelBelow);
  }

  absl::Status Refuse(float label, size_t number, uint64_t sample) const {
    return absl::OutOfRangeError(absl::StrCat(
        reader_->PlaceOf(sample), ": label ", number, " is ", label,
        ", and a cross entropy takes labels in [0, 1]", may_be_missing_ ? ", and -1 for none" : "",
        ": make it 0 or 1 (cistern data convert --label-threshold does), or see whether the "
        "model's label_dim, dense_dim and float_label_dense are those of the data"));
  }

  const std::unique_ptr<SampleReader> reader_;
  const size_t label_dim_;
  const bool may_be_missing_;
  uint64_t samples_ = 0;  // before the next one
};

}  // namespace

std::unique_ptr<SampleReader> OpenWithLabels(std::unique_ptr<SampleReader> reader,
                                             const DataSetOptions& data) {
  return std::make_unique<LabelReader>(std::move(reader), data);
}

}  // namespace cistern
