// The loss of a model, and the predictions that belong to it.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/tensor.h"

namespace cistern {

// One of BinaryCrossEntropyLoss (any number of labels with equal weight), CrossEntropyLoss (softmax
// over two classes) and MultiCrossEntropyLoss (weighted labels, some masked). The model adds the
// regularizers.
//
// Threads: one at a time.
class Loss {
 public:
  // logit, label: the loss layer's inputs.
  // kInvalidArgument if their shapes do not match, or if target_weight does not have one number per
  // label.
  static absl::StatusOr<std::unique_ptr<Loss>> Create(const LayerConfig& config,
                                                      const Tensor& logit, const Tensor& label);
  virtual ~Loss() = default;

  // Allocates the device memory of the loss's own constants.
  virtual absl::Status Allocate(DeviceContext& device) { return absl::OkStatus(); }

  // *loss = the sum over `size` samples, divided by `all`: this worker's share of the mean over the
  // batches of all workers. Not finite if a logit is not finite. Overwrites dlogits.
  //
  // loss: one double in device memory. scratch: [ScratchFloats(size)].
  virtual void Compute(op::ConstValues logits, const float* labels, size_t size, size_t all,
                       double* loss, op::ScaledValues dlogits, float* scratch, Stream& stream) = 0;
  virtual size_t ScratchFloats(size_t size) const = 0;
  // predictions: [size, label_dim], the probabilities of label 1.
  virtual void Predict(op::ConstValues logits, size_t size, float* predictions, Stream& stream) = 0;
};

}  // namespace cistern
