#include "worker/model/layer/loss.h"

#include <cmath>

#include "cuda/op/loss/bce_loss.h"
#include "cuda/op/loss/label_loss.h"
#include "worker/model/layer/device_buffer.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

class BinaryLoss : public Loss {
 public:
  BinaryLoss(const Tensor& logit, size_t labels) : Loss(logit), labels_(labels) {}

  void Compute(const Step& step, double* loss, float* scratch) override {
    op::BceLoss(logit_.value(), LabelsOf(step, labels_), loss, dlogits(step), step.size * labels_,
                step.all() * labels_, scratch, step.stream);
  }
  size_t ScratchFloats(size_t size) const override {
    return op::BceLossScratchFloats(size * labels_);
  }
  void Predict(size_t size, float* predictions, Stream& stream) override {
    op::Sigmoid(logit_.value(), predictions, size * labels_, stream);
  }

 private:
  const size_t labels_;
};

class TwoClassLoss : public Loss {
 public:
  explicit TwoClassLoss(const Tensor& logit) : Loss(logit) {}

  void Compute(const Step& step, double* loss, float* scratch) override {
    op::TwoClassLoss(logit_.value(), LabelsOf(step, 1), loss, dlogits(step), step.size, step.all(),
                     scratch, step.stream);
  }
  size_t ScratchFloats(size_t size) const override { return op::LabelLossScratchFloats(size); }
  void Predict(size_t size, float* predictions, Stream& stream) override {
    op::TwoClassProbability(logit_.value(), predictions, size, stream);
  }
};

class MultiLabelLoss : public BinaryLoss {
 public:
  MultiLabelLoss(const Tensor& logit, const std::vector<float>& target_weight)
      : BinaryLoss(logit, target_weight.size()), target_weight_(target_weight) {}

  absl::Status Allocate(DeviceContext& device) override {
    CISTERN_RETURN_IF_ERROR(weights_.Grow(target_weight_.size(), device, "label weights"));
    CopyToDevice(target_weight_.data(), weights_.data(), target_weight_.size() * sizeof(float),
                 device.stream());
    return device.stream().Wait();
  }

  void Compute(const Step& step, double* loss, float* scratch) override {
    op::MultiLabelLoss(logit_.value(), LabelsOf(step, target_weight_.size()), weights_.data(), loss,
                       dlogits(step), step.size, step.all(), target_weight_.size(), scratch,
                       step.stream);
  }
  size_t ScratchFloats(size_t size) const override {
    return op::LabelLossScratchFloats(size * target_weight_.size());
  }

 private:
  const std::vector<float> target_weight_;
  DeviceFloats weights_;  // target_weight_ in device memory
};

absl::Status Error(const LayerConfig& config, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(DescribeSite(config), ": ", what));
}

std::string DescribeInputs(const Tensor& logit, const Tensor& label) {
  return absl::StrCat("logit '", logit.name, "' is ", logit.shape.ToString(), " and label '",
                      label.name, "' is ", label.shape.ToString());
}

absl::StatusOr<std::unique_ptr<Loss>> Make(const LayerConfig& config, const Tensor& logit,
                                           const Tensor& label) {
  if (config.type == "CrossEntropyLoss") {
    if (logit.shape != TensorShape{1, {2}} || label.shape.columns() != 1) {
      return Error(config, DescribeInputs(logit, label) +
                               "; two classes need [b, 2] and [b, 1]: for a single logit use "
                               "BinaryCrossEntropyLoss");
    }
    return std::make_unique<TwoClassLoss>(logit);
  }
  if (logit.shape != label.shape) {
    const bool has_vectors = logit.shape.rank() > label.shape.rank();
    return Error(config, DescribeInputs(logit, label) + "; they must have the same shape" +
                             (has_vectors ? ": put a Reshape to two dimensions before the layers "
                                            "that lead to the logit"
                                          : ""));
  }
  const size_t labels = label.shape.columns();
  if (config.type == "BinaryCrossEntropyLoss") return std::make_unique<BinaryLoss>(logit, labels);
  const std::vector<float>& weights = config.own<LossConfig>().target_weight;
  if (weights.size() != labels) {
    return Error(config, absl::StrCat("target_weight has ", weights.size(), " numbers and label '",
                                      label.name, "' is ", label.shape.ToString(),
                                      "; it must have one for each label"));
  }
  return std::make_unique<MultiLabelLoss>(logit, weights);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loss>> Loss::Create(const LayerConfig& config,
                                                   const CisternConfig& cistern,
                                                   const Tensor& logit, const Tensor& label) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Loss> loss, Make(config, logit, label));
  loss->positive_weight_ = cistern.positive_weight;
  loss->logit_offset_ = -std::log(cistern.negative_rate);
  return loss;
}

op::WeightedLabels Loss::LabelsOf(const Step& step, size_t labels) const {
  op::WeightedLabels of_step(step.batch.label, step.batch.weight, labels);
  of_step.positive_weight = positive_weight_;
  of_step.logit_offset = logit_offset_;
  return of_step;
}

}  // namespace cistern::model
