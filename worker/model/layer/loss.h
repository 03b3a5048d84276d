// The loss of a model, and the predictions that go with it.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/tensor.h"

namespace cistern {

// BinaryCrossEntropyLoss (any number of labels, all equal), CrossEntropyLoss (softmax over two
// classes), MultiCrossEntropyLoss (weighted labels, some masked). Regularizers are the model's.
//
// Threads: one at a time.
class Loss {
 public:
  // logit, label: the loss layer's inputs. kInvalidArgument: their shapes do not fit, with both;
  // target_weight is not one number a label.
  static absl::StatusOr<std::unique_ptr<Loss>> Create(const LayerConfig& config,
                                                      const Tensor& logit, const Tensor& label);
  virtual ~Loss() = default;

  // Takes the memory of what the loss itself holds on the device.
  virtual absl::Status Allocate(DeviceContext& device) { return absl::OkStatus(); }

  // *loss = the sum over `size` samples, over `all`: the mean of a batch of which other workers
  // have the rest. Not finite if a logit is not. dlogits is overwritten.
  // loss: one double of the device, as all that ops write. scratch: ScratchFloats(size).
  virtual void Compute(op::ConstValues logits, const float* labels, size_t size, size_t all,
                       double* loss, op::ScaledValues dlogits, float* scratch, Stream& stream) = 0;
  virtual size_t ScratchFloats(size_t size) const = 0;
  // Probabilities of label 1: [size, label_dim].
  virtual void Predict(op::ConstValues logits, size_t size, float* predictions, Stream& stream) = 0;
};

}  // namespace cistern
