// What a model file says of precision, in the words of the ops.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "cuda/core/element_type.h"
#include "cuda/core/stream.h"
#include "cuda/op/update/gradient_scaler.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// What products on a GPU may round their inputs to.
ProductPrecision ProductsOf(const ModelConfig& config);

ElementType ActivationsOf(const ModelConfig& config);

op::LossScaling ScalingOf(const ModelConfig& config);

// How far a dynamic loss scale is (op::GradientScaler). A scale of 0: none, or a constant one.
struct LossScale {
  uint64_t scale = 0;
  uint64_t good_steps = 0;
  bool operator==(const LossScale&) const = default;
};

// Of a scaler, where the scale is dynamic.
LossScale LossScaleOf(const op::GradientScaler& scaler, op::LossScaling scaling);
// A scaler with it. kDataLoss: no run comes to such a scale.
absl::StatusOr<op::GradientScaler> ScalerWith(const LossScale& at);
// Of the first step.
op::GradientScaler FirstScaler(const ModelConfig& config);

// Why step `number` has closed the scaler for good, and what may help.
absl::Status NotFinite(const ModelConfig& config, const op::GradientScaler& scaler,
                       uint64_t number);

}  // namespace cistern
