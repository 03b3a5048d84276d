// Converts the precision settings of a model file to the types of the ops.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "cuda/core/element_type.h"
#include "cuda/core/stream.h"
#include "cuda/op/update/gradient_scaler.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {

// The precision to which matrix products on a GPU may round their inputs.
ProductPrecision ProductsOf(const ModelConfig& config);

ElementType ActivationsOf(const ModelConfig& config);

op::LossScaling ScalingOf(const ModelConfig& config);

// The state of a dynamic loss scale (op::GradientScaler). scale is 0 if there is no loss scale or a
// constant one.
struct LossScale {
  uint64_t scale = 0;
  uint64_t good_steps = 0;
  bool operator==(const LossScale&) const = default;
};

// Returns the scaler's loss scale, or a LossScale of 0 if it is not dynamic.
LossScale LossScaleOf(const op::GradientScaler& scaler, op::LossScaling scaling);
// Returns a scaler with this state. kDataLoss if no run can reach it.
absl::StatusOr<op::GradientScaler> ScalerWith(const LossScale& at);
// The scaler of the first step.
op::GradientScaler FirstScaler(const ModelConfig& config);

// The error of step `number`, whose loss or gradient is not finite: the cause and possible fixes.
absl::Status NotFinite(const ModelConfig& config, const op::GradientScaler& scaler,
                       uint64_t number);

}  // namespace cistern::model
