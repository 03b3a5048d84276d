#include "worker/data/format/label_check.h"

#include <utility>

#include "worker/data/format/checked_reader.h"

namespace cistern {
namespace {

class LabelReader : public CheckedReader {
 public:
  LabelReader(std::unique_ptr<SampleReader> reader, const DataSetOptions& data)
      : CheckedReader(std::move(reader)),
        label_dim_(data.shape.label_dim),
        may_be_missing_(data.labels == LabelRule::kProbabilityOrNone) {}

 protected:
  std::optional<BadSample> FindBad(const SampleBlock& block, size_t begin) const override {
    for (size_t i = begin * label_dim_; i < block.label.size(); ++i) {
      if (IsLabel(block.label[i])) continue;
      return BadSample{i / label_dim_, Refusal(block.label[i], i % label_dim_)};
    }
    return std::nullopt;
  }

 private:
  bool IsLabel(float x) const {
    return (x >= 0 && x <= 1) || (may_be_missing_ && x < kNoLabelBelow);
  }

  std::string Refusal(float label, size_t number) const {
    return absl::StrCat("label ", number, " is ", label,
                        ", but a cross entropy takes labels in [0, 1]",
                        may_be_missing_ ? ", or -1 for none" : "",
                        ": make it 0 or 1 when the data is converted, or check that the model's "
                        "label_dim, dense_dim and float_label_dense match the data");
  }

  const size_t label_dim_;
  const bool may_be_missing_;
};

}  // namespace

std::unique_ptr<SampleReader> OpenWithLabels(std::unique_ptr<SampleReader> reader,
                                             const DataSetOptions& data) {
  return std::make_unique<LabelReader>(std::move(reader), data);
}

}  // namespace cistern
