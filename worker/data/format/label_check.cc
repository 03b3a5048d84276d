#include "worker/data/format/label_check.h"

#include <utility>

#include "worker/data/format/checked_reader.h"

namespace cistern::data {
namespace {

class LabelReader : public CheckedReader {
 public:
  LabelReader(std::unique_ptr<SampleReader> reader, const DataSetOptions& data)
      : CheckedReader(std::move(reader)),
        label_dim_(data.shape.label_dim),
        weighted_(data.shape.weighted),
        any_label_(data.labels == LabelRule::kAny),
        may_be_missing_(data.labels == LabelRule::kProbabilityOrNone) {}

 protected:
  std::optional<BadSample> FindBad(const SampleBlock& block, size_t begin) const override {
    for (size_t i = begin * label_dim_; i < block.label.size(); ++i) {
      const float x = block.label[i];
      if (weighted_ && i % label_dim_ == label_dim_ - 1) {
        if (!IsSampleWeight(double{x})) return BadSample{i / label_dim_, RefusalOfWeight(x)};
      } else if (!IsLabel(x)) {
        return BadSample{i / label_dim_, Refusal(x, i % label_dim_)};
      }
    }
    return std::nullopt;
  }

 private:
  bool IsLabel(float x) const {
    return any_label_ || (x >= 0 && x <= 1) || (may_be_missing_ && x < kNoLabelBelow);
  }

  std::string Refusal(float label, size_t number) const {
    return absl::StrCat("label ", number, " is ", label,
                        ", but a cross entropy takes labels in [0, 1]",
                        may_be_missing_ ? ", or -1 for none" : "",
                        ": make it 0 or 1 when the data is converted, or check that the model's "
                        "label_dim, dense_dim and float_label_dense match the data");
  }

  static std::string RefusalOfWeight(float weight) {
    return absl::StrCat("the weight is ", weight, ", but a weight is a number from 0 to ",
                        kSampleWeightMax,
                        ": correct it, or check that the last label of the data "
                        "is the weight (cistern.sample_weights)");
  }

  const size_t label_dim_;
  const bool weighted_, any_label_;
  const bool may_be_missing_;
};

}  // namespace

std::unique_ptr<SampleReader> OpenWithLabels(std::unique_ptr<SampleReader> reader,
                                             const DataSetOptions& data) {
  return std::make_unique<LabelReader>(std::move(reader), data);
}

}  // namespace cistern::data
