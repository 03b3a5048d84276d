// The loss of a model, and the predictions that belong to it.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "cuda/op/loss/weighted_labels.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer.h"
#include "worker/model/layer/tensor.h"

namespace cistern::model {

// One of BinaryCrossEntropyLoss (any number of labels with equal weight), CrossEntropyLoss (softmax
// over two classes) and MultiCrossEntropyLoss (weighted labels, some masked). The model adds the
// regularizers.
//
// Threads: one at a time.
class Loss {
 public:
  // cistern: positive_weight and negative_rate. logit, label: the loss layer's inputs. logit must
  // outlive this.
  // kInvalidArgument if their shapes do not match, or if target_weight does not have one number per
  // label.
  static absl::StatusOr<std::unique_ptr<Loss>> Create(const LayerConfig& config,
                                                      const CisternConfig& cistern,
                                                      const Tensor& logit, const Tensor& label);
  virtual ~Loss() = default;

  // Allocates the device memory of the loss's own constants.
  virtual absl::Status Allocate(DeviceContext& device) { return absl::OkStatus(); }

  // *loss = the weighted sum over the samples of `step`, divided by the number of samples of all
  // workers: this worker's share of the mean. The weights of the batch have mean 1 (batch.h). Not
  // finite if a logit is not finite. Overwrites the gradient of the logit.
  //
  // loss: one double in device memory. scratch: [ScratchFloats(step.size)].
  virtual void Compute(const Step& step, double* loss, float* scratch) = 0;
  virtual size_t ScratchFloats(size_t size) const = 0;
  // predictions: [size, label_dim], the probabilities of label 1.
  virtual void Predict(size_t size, float* predictions, Stream& stream) = 0;

 protected:
  explicit Loss(const Tensor& logit) : logit_(logit) {}
  // labels: of a sample.
  op::WeightedLabels LabelsOf(const Step& step, size_t labels) const;
  op::ScaledValues dlogits(const Step& step) const { return {logit_.grad(), step.loss_scale}; }

  const Tensor& logit_;

 private:
  double positive_weight_ = 1, logit_offset_ = 0;
};

}  // namespace cistern::model
